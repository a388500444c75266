#include "view_world.h"

#include "harness/sweep.h"

static void ready_when_all_is_known(void **state)
{
	(void)state;
	begin();
	sync_all();
	end();
}

static void own_pod(const char *mark)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'me','namespace':'sys','uid':'um','resourceVersion':'%llu','annotations':{"
		 "'term':'%s'}},'spec':{'nodeName':'n1'}}",
		 (unsigned long long)++w.version, mark);
	fake_watch_of(PODS);
	fake_watch(str_text(&text), false);
}

static void the_fence_waits_for_its_mark(void **state)
{
	const struct view_fence fence = { "sys", "me", "term", "t2", on_passed, NULL };

	(void)state;
	begin();
	sync_all();
	own_pod("t1");
	assert_int_equal(view_wait(w.view, &fence, NULL), 0);
	own_pod("t1");
	tell_pod("n1", "", "", "Running", false);
	assert_int_equal(w.passed, 0);
	own_pod("t2");
	assert_int_equal(w.passed, 1);
	own_pod("t2");
	assert_int_equal(w.passed, 1);
	assert_int_equal(w.relists, 0);
	end();
}

static bool relisted(const void *arg)
{
	(void)arg;
	return w.relists > 0;
}

static void without_a_mark_all_is_listed_anew(void **state)
{
	const struct view_fence fence = { "sys", "me", "term", "t2", on_passed, NULL };
	const struct view_fence bare = { .passed = on_passed };

	(void)state;
	begin();
	assert_int_equal(view_wait(w.view, &bare, NULL), 0);
	assert_int_equal(w.relists, 1);
	assert_int_equal(w.passed, 0);
	list_pods_ends();
	assert_int_equal(w.passed, 1);
	list_pods_ends();
	assert_int_equal(w.passed, 1);
	/* Nor does the mark come: after a minute. */
	w.relists = 0;
	assert_int_equal(view_wait(w.view, &fence, NULL), 0);
	assert_true(fast_until(fake_loop, relisted, NULL));
	list_pods_ends();
	assert_int_equal(w.passed, 2);
	end();
}

/* Our pod is on the first page, a Binding of before its mark on the last. */
static void in_a_list_the_mark_alone_is_not_enough(void **state)
{
	const struct view_fence fence = { "sys", "me", "term", "t2", on_passed, NULL };

	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	assert_int_equal(view_wait(w.view, &fence, NULL), 0);
	fake_lists = true;
	list_pods_begins();
	own_pod("t2");
	assert_int_equal(w.passed, 0);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	assert_int_equal(w.passed, 0);
	list_pods_ends();
	assert_int_equal(w.passed, 1);
	assert_int_equal(used()->memory_mib, 3000);
	assert_int_equal(w.relists, 0);
	end();
}

/* What /filter promises: one share of pod "up" on node n1. */
static void promise(void)
{
	const struct card_ask ask = { .kind = ASK_APP, .count = 1, .memory_mib = 3000 };
	const struct hold_share share = { .uuid = "GPU-a", .memory_mib = 3000 };
	const struct hold hold = { .uid = "up",
				   .name_space = "ns",
				   .name = "p",
				   .node = "n1",
				   .state = HOLD_RESERVED,
				   .expires_ms = UINT64_MAX,
				   .asks = &ask,
				   .ask_count = 1,
				   .shares = &share,
				   .share_count = 1 };

	assert_int_equal(cluster_hold(w.cluster, &hold, NULL), 0);
}

static void what_ended_while_nobody_watched_is_free(void **state)
{
	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	promise();
	assert_int_equal(cluster_confirm(w.cluster, "up", "n1", NULL), 0);
	/* Bound while a list is under way: it need not have it. */
	list_pods_begins();
	cluster_bound(w.cluster, "up");
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 3000);
	/* The watch stays away, the pod ends: the next list does not have it. */
	list_pods_begins();
	list_pods_begins(); /* its first page was asked for twice */
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 0);
	/* One that was told is the reflector's to miss. */
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	list_pods_begins();
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 3000);
	end();
}

/* Bound by us, and somebody took the annotations off before the list: it holds. Bound by somebody else without our
 * annotations: our promise is nobody's. */
static void bound_without_our_words(void **state)
{
	static const char bare[] = "{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'99'},"
				   "'spec':{'nodeName':'n1','containers':[]},'status':{'phase':'Running'}}";
	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	promise();
	assert_int_equal(cluster_confirm(w.cluster, "up", "n1", NULL), 0);
	cluster_bound(w.cluster, "up");
	list_pods_begins();
	fake_watch(bare, false);
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 3000);
	cluster_release(w.cluster, "up");
	promise();
	assert_int_equal(used()->memory_mib, 3000);
	fake_watch(bare, false);
	assert_int_equal(used()->memory_mib, 0);
	end();
}

#define BARE(n, state, resources)                                                                                      \
	"{'metadata':{'name':'p" n "','namespace':'ns','uid':'up" n "','resourceVersion':'9'},'spec':{'nodeName':'n" n \
	"','containers':[{'name':'c'," resources "}]},'status':{'containerStatuses':[{'name':'c','state':{'" state     \
	"':{}}}]}}"

/* Somebody took the annotations off, and then we were started. */
static void a_pod_that_runs_holds_whatever_it_says(void **state)
{
	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	fake_watch_of(PODS);
	fake_watch(BARE("1", "waiting", ASKS), false);
	fake_watch(BARE("1", "running", "'name':'d'"), false);
	assert_int_equal(cluster_holding_count(w.cluster), 0);
	fake_watch(BARE("1", "running", ASKS), false);
	assert_int_equal(used()->memory_mib, 3000);
	assert_int_equal(w.events, 1);
	assert_memory_equal(w.event, "Pod ns/p1 PlacementDoubted: it runs with cards, and ", 52);
	/* On a node that has no cards of ours another plugin may have given it some. */
	fake_watch(BARE("2", "running", ASKS), false);
	assert_int_equal(w.events, 1);
	end();
}

static int tell_tree(void *arg)
{
	struct kube_object o;

	assert_int_equal(kube_object_read(arg, &o, NULL), 0);
	fake_reflector.changed(fake_reflector.arg, &o);
	return 0;
}

/* Nothing is placed until it was told once more, and could be taken. */
static void what_memory_was_short_for_is_told_again(void **state)
{
	static const struct {
		const char *path, *text;
	} rows[] = {
		{ PODS, "{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'9','annotations':{"
			"'hami.io/vgpu-node':'n1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA,3000,0:;'}},"
			"'spec':{'nodeName':'n1','containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'1'"
			"}}}]},'status':{'phase':'Running'}}" },
		{ NODES, "{'metadata':{'name':'n1','uid':'un','resourceVersion':'9','annotations':{" REGISTER "}},"
			 "'status':{'allocatable':{'nvidia.com/gpu':'20'}}}" },
		{ QUOTAS, "{'metadata':{'name':'q','namespace':'ns','uid':'uq','resourceVersion':'9'},"
			  "'spec':{'hard':{'limits.nvidia.com/gpumem':'5000'}}}" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *tree = json_of(rows[i].text);
		bool hit = true;

		for (size_t nth = 1; hit; nth++) {
			begin();
			sync_all();
			tell_node(REGISTER, "10", false);
			fake_watch_of(rows[i].path);
			hit = sweep_once(tell_tree, tree, nth);
			assert_int_equal(view_barred(w.view) != NULL, hit);
			if (hit) {
				assert_true(fast_until(fake_loop, relisted, NULL));
				assert_int_equal(w.relists, 1);
				assert_non_null(view_barred(w.view));
				(void)tell_tree(tree);
				fake_reflector.listed(fake_reflector.arg);
				assert_null(view_barred(w.view));
			}
			assert_int_equal(used()->memory_mib, i == 0 ? 3000 : 0);
			if (i == 2)
				assert_int_equal(quotas_room(cluster_quotas(w.cluster), "ns").memory_mib, 5000);
			end();
			assert_true(nth < 100);
		}
	}
}

#define BUDGET(allowed, selector)                                                                                      \
	"{'metadata':{'name':'b','namespace':'ns','uid':'ub','resourceVersion':'9'},'spec':{'selector':" selector      \
	"},'status':{'disruptionsAllowed':" #allowed "}}"
#define OF_WEB "{'matchLabels':{'app':'web'}}"
#define TEXT "GPU-a,NVIDIA,3000,0:;"

/* The pod that holds goes: is that more than is allowed? */
static bool violates(void)
{
	const struct holding *h = cluster_find(w.cluster, "up");

	budgets_begin(cluster_budgets(w.cluster));
	return budgets_take(cluster_budgets(w.cluster), "ns", "p", h->labels);
}

static void tell_budget(const char *text, bool gone)
{
	fake_watch_of(BUDGETS);
	fake_watch(text, gone);
}

/* Budgets change, and so may labels of a pod that has its cards. */
static void budgets_and_labels(void **state)
{
	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	tell_pod("n1", TEXT, ",'labels':{'app':'web'}", "Running", false);
	assert_false(violates());
	tell_budget(BUDGET(0, OF_WEB), false);
	assert_true(violates());
	tell_budget(BUDGET(1, OF_WEB), false);
	assert_false(violates());
	tell_budget(BUDGET(0, "{'matchLabels':{'app':'db'}}"), false);
	assert_false(violates());
	tell_pod("n1", TEXT, ",'labels':{'app':'db'}", "Running", false);
	assert_true(violates());
	tell_pod("n1", TEXT, ",'labels':{'app':'db','more':'x'}", "Running", false);
	assert_true(violates());
	assert_int_equal(w.bound, 1);
	tell_budget(BUDGET(0, "{}"), false);
	assert_false(violates());
	tell_budget(BUDGET(0, "{'matchLabels':{'app':'db'}}"), false);
	tell_budget(BUDGET(0, "{'matchExpressions':[{}]}"), false);
	assert_false(violates());
	tell_budget(BUDGET(0, "{'matchLabels':{'app':'db'}}"), false);
	tell_budget(BUDGET(0, "{'matchLabels':{'app':'db'}}"), true);
	assert_false(violates());
	tell_pod("n1", TEXT, "", "Running", false);
	tell_budget(BUDGET(0, "{'matchExpressions':[{'key':'app','operator':'DoesNotExist'}]}"), false);
	assert_false(violates()); /* a pod without labels */
	end();
}

/* The labels of a pod that holds. */
static void a_label_that_memory_was_short_for(void **state)
{
	static const char pod[] =
		"{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'99','labels':{'app':'web'},"
		"'annotations':{'hami.io/vgpu-node':'n1','hami.io/vgpu-devices-allocated':'" TEXT "'}},'spec':{"
		"'nodeName':'n1'},'status':{'phase':'Running'}}";
	hm_auto(cJSON) *tree = json_of(pod);
	bool hit = true;
	size_t nth;

	(void)state;
	for (nth = 1; hit; nth++) {
		begin();
		sync_all();
		tell_pod("n1", TEXT, "", "Running", false);
		tell_budget(BUDGET(0, OF_WEB), false);
		assert_false(violates());
		fake_watch_of(PODS);
		hit = sweep_once(tell_tree, tree, nth);
		assert_int_equal(violates(), !hit);
		assert_int_equal(view_barred(w.view) != NULL, hit);
		if (hit) {
			assert_true(fast_until(fake_loop, relisted, NULL));
			(void)tell_tree(tree);
			assert_true(violates());
		}
		end();
	}
	assert_in_range(nth, 3, 100);
}

static unsigned told_of_budgets(void)
{
	static const char words[] = "a disruption budget counts for nobody budget=ns/b err=\"selector: ";
	unsigned n = 0;

	for (const char *at = fast_log; (at = strstr(at, words)) != NULL; at++)
		n++;
	return n;
}

/* Once, however often its status changes; again where it was mended, or another one has its name. */
static void a_budget_that_is_ignored_is_told_of(void **state)
{
	hm_auto_str large = { 0 };
	static const char bad[] = BUDGET(0, "{'matchExpressions':[{}]}"), good[] = BUDGET(0, OF_WEB);

	(void)state;
	for (int i = 0; i <= BUDGET_MAX_WORDS / 2; i++)
		str_addf(&large, "%s'k%d':'v'", i > 0 ? "," : "", i);
	for (int i = 0; i < 2; i++) {
		hm_auto_str text = { 0 };

		if (i == 0)
			str_addf(&text, BUDGET(0, "{'matchLabels':{%s}}"), str_text(&large));
		else
			str_add(&text, bad);
		begin();
		sync_all();
		fast_log_bytes = 0;
		fast_log[0] = '\0';
		tell_budget(str_text(&text), false);
		assert_int_equal(told_of_budgets(), 1);
		tell_budget(str_text(&text), false);
		assert_int_equal(told_of_budgets(), 1);
		tell_budget(good, false);
		tell_budget(str_text(&text), false);
		assert_int_equal(told_of_budgets(), 2);
		tell_budget(str_text(&text), true);
		tell_budget(str_text(&text), false);
		assert_int_equal(told_of_budgets(), 3);
		end();
	}
}

/* Whatever else goes wrong with the first list: they may come yet. */
static void budgets_are_waited_for_unless_refused(void **state)
{
	(void)state;
	begin();
	sync_all();
	assert_non_null(view_budgets_barred(w.view));
	fake_state.failures = 3;
	assert_string_equal(view_budgets_barred(w.view), "the scheduler does not know the disruption budgets yet");
	fake_state.refused = true;
	assert_null(view_budgets_barred(w.view));
	fake_state.refused = false;
	fake_state.synced = true;
	assert_null(view_budgets_barred(w.view));
	end();
}

/* Only evictions need them: pods are placed meanwhile. What was known before is known still. */
static void a_budget_that_memory_was_short_for(void **state)
{
	hm_auto(cJSON) *tree = json_of(BUDGET(1, "{'matchLabels':{'app':'web','more':'x'}}"));
	bool hit = true;

	(void)state;
	for (size_t nth = 1; hit; nth++) {
		begin();
		sync_all();
		fake_state.synced = true;
		tell_pod("n1", TEXT, ",'labels':{'app':'web'}", "Running", false);
		tell_budget(BUDGET(0, OF_WEB), false);
		fake_watch_of(BUDGETS);
		hit = sweep_once(tell_tree, tree, nth);
		assert_null(view_barred(w.view));
		assert_int_equal(violates(), hit);
		assert_int_equal(view_budgets_barred(w.view) != NULL, hit);
		if (hit) {
			assert_true(fast_until(fake_loop, relisted, NULL));
			assert_non_null(view_budgets_barred(w.view));
			fake_watch_of(BUDGETS);
			(void)tell_tree(tree);
			fake_reflector.listed(fake_reflector.arg);
			assert_null(view_budgets_barred(w.view));
		}
		assert_false(violates());
		end();
		assert_true(nth < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_when_all_is_known),
		cmocka_unit_test(the_fence_waits_for_its_mark),
		cmocka_unit_test(without_a_mark_all_is_listed_anew),
		cmocka_unit_test(in_a_list_the_mark_alone_is_not_enough),
		cmocka_unit_test(what_ended_while_nobody_watched_is_free),
		cmocka_unit_test(bound_without_our_words),
		cmocka_unit_test(what_memory_was_short_for_is_told_again),
		cmocka_unit_test(a_pod_that_runs_holds_whatever_it_says),
		cmocka_unit_test(budgets_and_labels),
		cmocka_unit_test(budgets_are_waited_for_unless_refused),
		cmocka_unit_test(a_budget_that_is_ignored_is_told_of),
		cmocka_unit_test(a_label_that_memory_was_short_for),
		cmocka_unit_test(a_budget_that_memory_was_short_for),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 100;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
