/* Traces of a few nodes and pods, placed as can be told by hand. */
#include "core/macros.h"
#include "harness/unit.h"
#include "sched/simulate/picture.h"
#include "sched/simulate/run.h"
#include "sched/simulate/weights_text.h"

#include <string.h>

static const char nodes[] = "sn,cpu_milli,memory_mib,gpu,model\n"
			    "a,64000,262144,2,T4\n"
			    "b,8000,262144,1,P100\r\n";

static const char pods_head[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

static void read_both(struct trace *t, const char *pods)
{
	hm_auto_str text = { 0 };
	struct hm_err e;

	str_add(&text, pods_head);
	str_add(&text, pods);
	if (trace_read_nodes(t, nodes, strlen(nodes), &e) != 0 || trace_read_pods(t, str_text(&text), text.n, &e) != 0)
		fail_msg("%s", e.msg);
}

static void a_trace(void **state)
{
	hm_auto_trace t = { 0 };
	hm_auto_scene s = { 0 };
	struct hm_err e;
	const struct node_state *b;

	(void)state;
	read_both(&t, "p,6000,1024,1,460,T4|P100\n\nq,4000,1024,0,0,\nr,1,2,8,1000,");
	assert_int_equal(t.node_count, 2);
	assert_int_equal(t.milli, 3000);
	assert_string_equal(t.nodes[1].type, "P100");
	assert_int_equal(t.pod_count, 3);
	assert_string_equal(t.pods[0].types, "T4,P100");
	assert_int_equal(t.pods[0].milli, 460);
	assert_int_equal(t.pods[0].ask.containers[0].cores, 0);
	assert_int_equal(t.pods[1].milli, 0);
	assert_false(pod_ask_any(&t.pods[1].ask));
	assert_null(t.pods[2].types);
	assert_int_equal(t.pods[2].milli, 8000);
	assert_int_equal(t.pods[2].ask.containers[0].cores, 100);
	assert_int_equal(trace_build(&t, &s, &e), 0);
	b = cluster_node(s.cluster, "b");
	assert_int_equal(b->count, 1);
	assert_int_equal(b->cpu_milli, 8000);
	assert_string_equal(b->cards[0].type, "NVIDIA-P100");
}

static void what_is_no_trace(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "the file is empty" },
		{ "name,memory_mib,num_gpu,gpu_milli\np,1,1,500\n", "line 1: there is no column cpu_milli" },
		{ "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n\np,1,x,1,500\n",
		  "line 3: memory_mib: \"x\" is no whole number up to 1073741824" },
		{ "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1\n",
		  "line 2: gpu_milli: \"\" is no whole number up to 1073741824" },
		{ "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1001\n",
		  "line 2: num_gpu 1, gpu_milli 1001: not up to 1024 cards of 1 to 1000" },
		{ "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n,1,1,1,100\n", "line 2: name is empty" },
		/* What a line lacks is not the line's before it. */
		{ "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,100\nq,1\n",
		  "line 3: memory_mib: \"\" is no whole number up to 1073741824" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_trace t = { 0 };
		struct hm_err e;

		assert_int_equal(trace_read_pods(&t, cases[i].text, strlen(cases[i].text), &e), -HM_EPROTO);
		assert_string_equal(e.msg, cases[i].says);
	}
}

static struct run_result run(const char *pods, const char *policy, struct scene *end)
{
	struct run_options o = { policy, policy, fgd_default_weights(), false, false, 0 };
	hm_auto_trace t = { 0 };
	hm_auto_workload w = { 0 };
	struct run_result r;
	struct hm_err e;

	read_both(&t, pods);
	assert_int_equal(workload_plain(&t, &w, &e), 0);
	if (run_trace(&t, &w, &o, end, &r, &e) != 0)
		fail_msg("%s", e.msg);
	return r;
}

static void pods_are_placed_or_dropped(void **state)
{
	hm_auto_scene end = { 0 };
	struct run_result r = run("p1,1000,1,1,600,\n"     /* anywhere */
				  "p2,1000,1,2,1000,\n"    /* two empty cards: a, if p1 left it alone */
				  "p3,1000,1,1,1000,\n"    /* none is empty */
				  "p4,9000,1,1,100,P100\n" /* b has not the CPU: a is of another type */
				  "p5,99000,1,0,0,\n"      /* no node has it */
				  "p6,1000,1,1,400,P100\n",
				  "fgd", &end);

	(void)state;
	assert_int_equal(r.pods, 6);
	assert_int_equal(r.placed, 3);
	assert_int_equal(r.short_of_cards, 2);
	assert_int_equal(r.short_of_host, 1);
	assert_int_equal(r.allocated_milli, 3000);
	assert_int_equal(r.arrived_milli, 4100);
	assert_int_equal(r.end.cards, 3);
	assert_int_equal(r.end.free_milli, 0);
	assert_int_equal(r.lost_milli, 0);
	/* 600 of 3000, then 2600 until 4100 were asked for and 3000 given */
	assert_int_equal(r.curve_count, 137);
	assert_int_equal(r.curve[0], 0);
	assert_int_equal(r.curve[20], 600);
	assert_int_equal(r.curve[86], 2600);
	assert_int_equal(r.curve[136], 3000);
	assert_int_equal(cluster_node(end.cluster, "b")->cpu_milli, 6000);
}

/* Six of 500 and one of 1000, where cards are chosen badly, leave nothing whole. */
static void policies_differ(void **state)
{
	static const char pods[] = "p1,1,1,1,500,\np2,1,1,1,500,\np3,1,1,1,500,\np4,1,1,1,1000,\n";
	hm_auto_scene packed = { 0 }, spread = { 0 };

	(void)state;
	assert_int_equal(run(pods, "fgd", &packed).placed, 4);
	assert_int_equal(packed.node_count, 2);
	assert_int_equal(run(pods, "spread", &spread).placed, 3);
}

static void an_order(void **state)
{
	hm_auto_trace t = { 0 };
	hm_auto_workload a = { 0 }, b = { 0 }, other = { 0 }, less = { 0 };
	struct hm_err e;
	int64_t sum = 0;

	(void)state;
	read_both(&t, "p,1,1,1,500,\nq,1,1,1,100,\nr,1,1,0,0,\n");
	assert_int_equal(workload_shuffled(&t, 6000, 42, &a, &e), 0);
	assert_int_equal(workload_shuffled(&t, 6000, 42, &b, &e), 0);
	assert_int_equal(workload_shuffled(&t, 6000, 43, &other, &e), 0);
	for (size_t i = 0; i < a.count; i++)
		sum += t.pods[a.order[i]].milli;
	assert_true(sum >= 6000 && sum < 6500);
	assert_int_equal(a.count, b.count);
	assert_memory_equal(a.order, b.order, a.count * sizeof a.order[0]);
	assert_true(a.count != other.count || memcmp(a.order, other.order, a.count * sizeof a.order[0]) != 0);
	assert_int_equal(workload_shuffled(&t, 100, 1, &less, &e), 0);
	sum = 0;
	for (size_t i = 0; i < less.count; i++)
		sum += t.pods[less.order[i]].milli;
	assert_true(sum <= 100);
}

static void weights(void **state)
{
	struct fgd_weights w;
	struct hm_err e;

	(void)state;
	assert_int_equal(weights_text_read("fragment=700,empty=-15000,step=21", &w, &e), 0);
	assert_int_equal(w.fragment, 700);
	assert_int_equal(w.copies, 0);
	assert_int_equal(w.empty, -15000);
	assert_int_equal(w.step, 21);
	assert_int_equal(weights_text_read("copies=1,blind-step=9", &w, &e), 0);
	assert_int_equal(w.blind_step, 9);
	assert_int_equal(w.fragment, 0);
	assert_int_equal(weights_text_read("copy=1", &w, &e), -HM_EINVAL);
	assert_string_equal(e.msg,
			    "\"copy=1\" is not one of fragment, copies, balance, empty, step, blind-step with =NUMBER, "
			    "-1000000 to 1000000");
	assert_int_equal(weights_text_read("copies=--1", &w, &e), -HM_EINVAL);
	assert_int_equal(weights_text_read("copies", &w, &e), -HM_EINVAL);
	assert_int_equal(weights_text_read("step=-1", &w, &e), -HM_EINVAL);
}

static size_t times(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		n++;
	return n;
}

static void a_picture(void **state)
{
	hm_auto_scene end = { 0 };
	hm_auto_str svg = { 0 };
	struct run_result r = run("p,1,1,1,1000,T4\n", "fgd", &end);

	(void)state;
	picture_write(&r, 1, 3000, &end, "a<b & c", &svg);
	assert_non_null(strstr(str_text(&svg), "a&lt;b &amp; c"));
	/* Three cards: a's two below one another, b's beside them; one is full. */
	assert_int_equal(times(str_text(&svg), "h3"), 3);
	assert_non_null(strstr(str_text(&svg), "stroke=\"#0b3c5d\" stroke-width=\"3\" d=\"M360 44h3\""));
	assert_non_null(strstr(str_text(&svg), "stroke=\"#e8eef2\" stroke-width=\"3\" d=\"M360 40h3M364 40h3\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace),
		cmocka_unit_test(what_is_no_trace),
		cmocka_unit_test(pods_are_placed_or_dropped),
		cmocka_unit_test(policies_differ),
		cmocka_unit_test(an_order),
		cmocka_unit_test(weights),
		cmocka_unit_test(a_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
