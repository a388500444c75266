#include "view_world.h"

#include <errno.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "sched/view/view_verify.h"
#include "unit/hami/signed_placement.h"

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
#define ASKS "'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'3000'}}"

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

#define SIGNED_POD(version, memory)                                                                                    \
	"{'metadata':{'name':'p','namespace':'ns','uid':'" POD_UID "','resourceVersion':'" version                     \
	"','annotations':{'hami.io/vgpu-node':'node-1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA," memory         \
	",30:;','hami.io/vgpu-time':'1787293239','hami.io/vgpu-signature':'v1.2026-11." PLAIN_BY_1                     \
	"'}},'spec':{'nodeName':'node-1','containers':[{'name':'c'," ASKS "}]},'status':{'phase':'Running'}}"

static void keys_that_come_later_are_asked(void **state)
{
	static const char signed_pod[] = SIGNED_POD("9", "3000");
	hm_auto(signature_keys) *keys = NULL;
	const struct holding *h;
	struct view_stats stats;

	(void)state;
	temp_write("2026-10", "no key");
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	begin_with(keys);
	sync_all();
	fake_watch_of(PODS);
	fake_watch(signed_pod, false);
	h = cluster_find(w.cluster, POD_UID);
	assert_true(h != NULL && h->unreadable);
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_refresh(keys, NULL), 1);
	view_keys_changed(w.view);
	assert_int_equal(w.relists, 1);
	fake_watch(signed_pod, false); /* the very same version */
	h = cluster_find(w.cluster, POD_UID);
	assert_true(h != NULL && !h->unreadable);
	view_stats(w.view, &stats);
	assert_int_equal(stats.doubted, 0);
	/* Nobody is doubted: nothing is asked. */
	view_keys_changed(w.view);
	assert_int_equal(w.relists, 1);
	end();
}

static bool is_synced(const void *arg)
{
	(void)arg;
	return view_is_synced(w.view);
}

static bool fork_fails;
pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
	if (!fork_fails)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

/* The first sync goes on meanwhile, and is over when each is known. */
static void check_first_sync(bool no_children)
{
	static const struct {
		const char *uid, *memory, *signature;
		bool believed;
	} rows[] = {
		{ POD_UID, "3000", PLAIN_BY_1, true },
		{ "other", "3000", PLAIN_BY_1, false },
		{ POD_UID, "3001", PLAIN_BY_1, false },
	};
	hm_auto(signature_keys) *keys = NULL;
	struct view_stats stats;

	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };
		const struct holding *h;

		begin_with(keys);
		str_addf(&text,
			 "{'metadata':{'name':'p','namespace':'ns','uid':'%s','resourceVersion':'9','annotations':{"
			 "'hami.io/vgpu-node':'node-1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA,%s,30:;',"
			 "'hami.io/vgpu-time':'1787293239','hami.io/vgpu-signature':'v1.2026-11.%s'}},"
			 "'spec':{'nodeName':'node-1','priority':1000,'containers':[{'name':'c'," ASKS "}]},"
			 "'status':{'phase':'Running'}}",
			 rows[i].uid, rows[i].memory, rows[i].signature);
		fake_watch_of(PODS);
		fake_watch(str_text(&text), false);
		sync_lists();
		assert_false(view_is_synced(w.view));
		assert_int_equal(w.events, 0);
		fork_fails = no_children;
		assert_true(fast_until(fake_loop, is_synced, NULL));
		fork_fails = false;
		assert_int_equal(w.synced, 1);
		h = cluster_find(w.cluster, rows[i].uid);
		assert_true(h != NULL && h->unreadable == !rows[i].believed);
		assert_int_equal(h->priority, 1000);
		view_stats(w.view, &stats);
		assert_int_equal(stats.doubted, !rows[i].believed);
		assert_int_equal(w.events, !rows[i].believed);
		if (!rows[i].believed)
			assert_string_equal(w.event,
					    "Pod ns/p PlacementDoubted: its placement is not signed by us: key "
					    "2026-11 did not sign this placement; counted as the most that it "
					    "could hold on any card of its node");
		end();
	}
}

static void signatures_of_the_first_sync(void **state)
{
	(void)state;
	check_first_sync(false);
	check_first_sync(true);
}

static struct {
	unsigned bad, idle;
} verified;

static void on_bad(void *arg, const struct view_bad *b, const struct hm_err *why)
{
	(void)arg;
	assert_int_equal(b->print, verified.bad); /* in order */
	assert_int_equal(why->code, HM_EPERM);
	verified.bad++;
}

static void on_all_verified(void *arg)
{
	(void)arg;
	verified.idle++;
}

/* No child can be had for a whole first sync: the loop goes on all the same. */
static void without_children_a_turn_is_short(void **state)
{
	enum { COUNT = 4500, TURN = 2000 };
	const struct view_verify_events events = { on_bad, on_all_verified, NULL };
	hm_auto(view_verify) *v = NULL;
	unsigned turns = 0;

	(void)state;
	assert_int_equal(view_verify_new(fake_loop, &events, &v, NULL), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		struct pod_hold h = { .hold = { .uid = "u" } };

		assert_int_equal(view_verify_add(v, &h, i, NULL), 0);
	}
	view_verify_flush(v);
	fork_fails = true;
	for (unsigned before = 0; !view_verify_is_idle(v); before = verified.bad, turns++) {
		assert_int_equal(loop_run_once(fake_loop, 100, NULL), 0);
		assert_in_range(verified.bad - before, 0, TURN);
		assert_true(turns < 100);
	}
	fork_fails = false;
	assert_int_equal(verified.bad, COUNT);
	assert_int_equal(verified.idle, 1);
}

/* What was told meanwhile is what counts; and an end in the middle leaves nothing. */
static void changes_while_signatures_are_checked(void **state)
{
	hm_auto(signature_keys) *keys = NULL;
	struct view_stats stats;

	(void)state;
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	for (int gone = 0; gone < 3; gone++) {
		begin_with(keys);
		fake_watch_of(PODS);
		fake_watch(SIGNED_POD("9", "3001"), false);
		if (gone == 1)
			fake_watch(SIGNED_POD("10", "3001"), true);
		else if (gone == 0)
			fake_watch(SIGNED_POD("10", "3000"), false);
		sync_lists();
		/* The watch goes on before all is known. */
		if (gone == 0) {
			fake_watch_of(PODS);
			fake_watch(SIGNED_POD("11", "3001"), false);
			fake_watch(SIGNED_POD("12", "3000"), false);
		}
		if (gone < 2) {
			assert_true(fast_until(fake_loop, is_synced, NULL));
			assert_int_equal(w.events, gone == 0); /* of version 11 */
			assert_int_equal(cluster_holding_count(w.cluster), gone == 0);
			view_stats(w.view, &stats);
			assert_int_equal(stats.doubted, 0);
		}
		end();
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_when_all_is_known),
		cmocka_unit_test(the_fence_waits_for_its_mark),
		cmocka_unit_test(without_a_mark_all_is_listed_anew),
		cmocka_unit_test(in_a_list_the_mark_alone_is_not_enough),
		cmocka_unit_test(what_ended_while_nobody_watched_is_free),
		cmocka_unit_test(bound_without_our_words),
		cmocka_unit_test(without_children_a_turn_is_short),
		cmocka_unit_test(what_memory_was_short_for_is_told_again),
		cmocka_unit_test(a_pod_that_runs_holds_whatever_it_says),
		cmocka_unit_test_setup_teardown(keys_that_come_later_are_asked, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(signatures_of_the_first_sync, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(changes_while_signatures_are_checked, temp_setup, temp_teardown),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 100;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
