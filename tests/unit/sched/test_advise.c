/* Clusters of a few cards, whose best plan can be told by hand; given as kubectl would print them. */
#include "sched/simulate/advise.h"

#include <string.h>

#include "core/macros.h"
#include "harness/json_of.h"
#include "sched/simulate/command.h"
#include "sched/simulate/snapshot.h"

#define CARD(id)                                                                                                       \
	"{\\'id\\':\\'" id "\\',\\'count\\':10,\\'devmem\\':1000,\\'devcore\\':100,\\'type\\':\\'NVIDIA A100\\',"      \
	"\\'mode\\':\\'hami-core\\',\\'health\\':true}"
#define NODE(name, cards)                                                                                              \
	"{'kind':'Node','metadata':{'name':'" name "','annotations':{'hami.io/node-nvidia-register':'[" cards          \
	"]'}},'status':{'allocatable':{'nvidia.com/gpu':'20'}}}"
#define ASK(n, mib)                                                                                                    \
	"'containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'" #n "','nvidia.com/gpumem':'" #mib "'}}}" \
	"]"
#define POD(name, more, spec)                                                                                          \
	"{'metadata':{'name':'" name "','namespace':'t','uid':'" name "'" more "},'spec':{" spec "}}"
#define BOUND(name, node, card, mib)                                                                                   \
	POD(name,                                                                                                      \
	    ",'annotations':{'hami.io/vgpu-node':'" node "','hami.io/vgpu-devices-allocated':'" card ",NVIDIA," #mib   \
	    ",0:;'}",                                                                                                  \
	    "'nodeName':'" node "'," ASK(1, mib))
#define WAITS(name, n, mib) POD(name, "", ASK(n, mib))

struct case_ {
	struct snapshot snapshot;
	struct scene scene;
	struct policy policy;
	struct advise_pod pods[16];
	size_t count;
};

static void read_case(struct case_ *c, const char *nodes, const char *pods)
{
	struct fgd_weights weights = fgd_default_weights();
	struct hm_err e = { 0 };

	weights.blind_step = 0;
	*c = (struct case_) { 0 };
	c->snapshot.nodes = json_of(nodes);
	{
		hm_auto(cJSON) *tree = json_of(pods);
		char *text = cJSON_PrintUnformatted(tree);

		assert_int_equal(snapshot_configure(&c->snapshot, NULL, &e), 0);
		assert_int_equal(snapshot_read_pods(&c->snapshot, text, strlen(text), &e), 0);
		cJSON_free(text);
	}
	if (snapshot_build(&c->snapshot, &c->scene, &e) != 0 || snapshot_mix(&c->snapshot, &c->policy.mix, &e) != 0 ||
	    policy_start(&c->policy, "fgd", "fgd", &weights, &e) != 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < c->snapshot.count; i++)
		if (c->snapshot.gpu_pods[i].held.holds)
			c->pods[c->count++] = (struct advise_pod) { snapshot_scene_pod(&c->snapshot.gpu_pods[i]),
								    &c->snapshot.gpu_pods[i].held.hold };
}

static void forget_case(struct case_ *c)
{
	policy_fini(&c->policy);
	scene_fini(&c->scene);
	snapshot_fini(&c->snapshot);
}

/* "p1>a:GPU-a1 " for each move, and then where the pod gets in, or the whole cards before and after; "*": however
 * that begins. */
static void expect(const char *nodes, const char *pods, const char *waiting, size_t moves, const char *want)
{
	hm_auto_str got = { 0 };
	struct advise_plan plan;
	struct scene_sum before, after;
	struct hm_err e = { 0 };
	struct case_ c;
	struct scene_pod pod = { 0 };
	int rc;

	read_case(&c, nodes, pods);
	for (size_t i = 0; waiting != NULL && i < c.snapshot.count; i++)
		if (strcmp(c.snapshot.gpu_pods[i].ask.name, waiting) == 0)
			pod = snapshot_scene_pod(&c.snapshot.gpu_pods[i]);
	before = scene_sum(&c.scene);
	rc = waiting == NULL ? advise_free_cards(&c.scene, c.policy.placer, c.pods, c.count, moves, &plan, &e)
			     : advise_let_in(&c.scene, c.policy.placer, c.pods, c.count, &pod, &plan, &e);
	if (rc != 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < plan.count; i++)
		str_addf(&got, "%s>%s:%s ", c.pods[plan.moves[i].pod].hold->name, plan.moves[i].to, plan.moves[i].card);
	if (waiting != NULL)
		str_add(&got, plan.node == NULL ? "nowhere" : plan.node);
	else
		str_addf(&got, "%lld %lld", (long long)plan.empty_before, (long long)plan.empty_after);
	if (want[0] == '*' && got.n >= strlen(want + 1))
		assert_string_equal(str_text(&got) + got.n - strlen(want + 1), want + 1);
	else
		assert_string_equal(str_text(&got), want);
	/* It was only tried. */
	after = scene_sum(&c.scene);
	assert_int_equal(before.free_milli, after.free_milli);
	assert_int_equal(before.empty_cards, after.empty_cards);
	assert_int_equal(cluster_holding_count(c.scene.cluster), c.count);
	for (size_t i = 0; i < c.count; i++) {
		const struct holding *h = cluster_find(c.scene.cluster, c.pods[i].pod.ask->uid);

		assert_string_equal(cluster_holding_node(h), c.pods[i].hold->node);
		assert_string_equal(cluster_holding_share(h, 0).uuid, c.pods[i].hold->shares[0].uuid);
	}
	forget_case(&c);
}

#define AB "{'items':[" NODE("a", CARD("GPU-a0") "," CARD("GPU-a1")) "," NODE("b", CARD("GPU-b0")) "]}"

static void a_card_is_cleared(void **state)
{
	(void)state;
	/* Each of the two may go to the other; of equal plans the first card's. */
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 500) "," BOUND("p2", "a", "GPU-a1",
								      400) "," BOUND("p3", "b", "GPU-b0", 700) "]}",
	       NULL, 5, "p1>a:GPU-a1 0 1");
	/* Nothing fits beside anything. */
	expect(AB, "{'items':[" BOUND("p1", "a", "GPU-a0", 600) "," BOUND("p2", "a", "GPU-a1", 600) "]}", NULL, 5,
	       "1 1");
	/* Three cards' pods fill one. */
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 300) "," BOUND("p2", "a", "GPU-a1",
								      300) "," BOUND("p3", "b", "GPU-b0", 400) "]}",
	       NULL, 5, "* 0 2");
	/* Two pods of one card, to two others. */
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 150) "," BOUND("p2", "a", "GPU-a0", 200) "," BOUND(
		       "p3", "a", "GPU-a1", 800) "," BOUND("p4", "b", "GPU-b0", 850) "]}",
	       NULL, 5, "p1>b:GPU-b0 p2>a:GPU-a1 0 1");
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 150) "," BOUND("p2", "a", "GPU-a0", 200) "," BOUND(
		       "p3", "a", "GPU-a1", 800) "," BOUND("p4", "b", "GPU-b0", 850) "]}",
	       NULL, 1, "0 0");
}

static void a_pod_gets_in(void **state)
{
	(void)state;
	/* p1 could go as well: the smaller does. */
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 500) "," BOUND("p2", "a", "GPU-a1", 400) "," BOUND(
		       "p3", "b", "GPU-b0", 700) "," WAITS("w", 1, 1000) "]}",
	       "w", 0, "p2>a:GPU-a0 a");
	/* Two must go. */
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 800) "," BOUND("p2", "a", "GPU-a1", 850) "," BOUND(
		       "p3", "b", "GPU-b0", 200) "," BOUND("p4", "b", "GPU-b0", 150) "," WAITS("w", 1, 900) "]}",
	       "w", 0, "p3>a:GPU-a0 p4>a:GPU-a1 b");
	expect(AB, "{'items':[" BOUND("p1", "a", "GPU-a0", 500) "," WAITS("w", 3, 1000) "]}", "w", 0, "nowhere");
	expect(AB,
	       "{'items':[" BOUND("p1", "a", "GPU-a0", 500) "," BOUND("p2", "b", "GPU-b0", 500) "," WAITS("w", 1,
													  1000) "]}",
	       "w", 0, "a");
}

static void what_may_not_move(void **state)
{
	(void)state;
	/* One that ends soon, and one of which nobody knows what it holds. */
	expect(AB,
	       "{'items':["
	       "{'metadata':{'name':'p1','namespace':'t','uid':'p1','deletionTimestamp':'2026-01-01T00:00:00Z',"
	       "'annotations':{'hami.io/vgpu-node':'a','hami.io/vgpu-devices-allocated':'GPU-a0,NVIDIA,400,0:;'}},"
	       "'spec':{'nodeName':'a'," ASK(1, 400) "}}," BOUND("p2", "b", "GPU-b0", 700) "]}",
	       NULL, 5, "1 1");
}

static void pods_of_a_snapshot(void **state)
{
	struct case_ c;

	(void)state;
	read_case(&c, NODE("a", CARD("GPU-a0")),
		  "{'items':[" BOUND("p1", "a", "GPU-a0", 500) "," WAITS(
			  "w", 1, 100) ","
				       "{'metadata':{'name':'done','namespace':'t','uid':'d'},'spec':{" ASK(
					       1, 5) "},'status':{'phase':'Succeeded'}},"
						     "{'metadata':{'name':'none','namespace':'t','uid':'n'},'spec':{'"
						     "containers':[{'name':'c'}]}}," WAITS("bad", x, 100) "]}");
	assert_int_equal(c.scene.node_count, 1);
	assert_int_equal(c.snapshot.count, 2);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.snapshot.unread, 1);
	assert_int_equal(c.policy.mix.total, 2);
	forget_case(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_card_is_cleared),
		cmocka_unit_test(a_pod_gets_in),
		cmocka_unit_test(what_may_not_move),
		cmocka_unit_test(pods_of_a_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
