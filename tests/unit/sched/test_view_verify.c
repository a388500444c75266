/* Signatures of the pods that the view is told of. */
#include "sched/view/view_verify.h"

#include <errno.h>
#include <unistd.h>

#include "harness/temp.h"
#include "unit/hami/signed_placement.h"
#include "view_world.h"

#define SIGNED(uid, version, memory, signature) SIGNED_WITH(uid, version, memory, signature, "'labels':{'app':'web'}")
#define SIGNED_WITH(uid, version, memory, signature, meta)                                                             \
	"{'metadata':{'name':'p','namespace':'ns','uid':'" uid "','resourceVersion':'" version "'," meta               \
	",'annotations':{'hami.io/vgpu-node':'node-1','hami.io/"                                                       \
	"vgpu-devices-allocated':'GPU-a,NVIDIA," memory                                                                \
	",30:;','hami.io/vgpu-time':'1787293239','hami.io/vgpu-signature':'v1.2026-11." signature                      \
	"'}},'spec':{'nodeName':'node-1','priority':1000,'containers':[{'name':'c'," ASKS                              \
	"}]},'status':{'phase':'Running'}}"
#define SIGNED_POD(version, memory) SIGNED(POD_UID, version, memory, PLAIN_BY_1)

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

/* Its key is taken away: it is believed all the same, whatever becomes of what nobody signed. */
static void who_is_believed_is_not_asked_again(void **state)
{
	static const struct {
		const char *pod, *labels;
		enum hold_state state;
	} steps[] = {
		{ SIGNED_WITH(POD_UID, "10", "3000", PLAIN_BY_1, "'labels':{'app':'db'}"), "app=db\n", HOLD_BOUND },
		{ SIGNED_WITH(POD_UID, "11", "3000", PLAIN_BY_1, "'x':1"), "", HOLD_BOUND },
		{ SIGNED_WITH(POD_UID, "12", "3000", PLAIN_BY_1, "'labels':{'a':'b'},'deletionTimestamp':'2026'"),
		  "a=b\n", HOLD_TERMINATING },
	};
	hm_auto(signature_keys) *keys = NULL;

	(void)state;
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	begin_with(keys);
	sync_all();
	fake_watch_of(PODS);
	fake_watch(SIGNED_POD("9", "3000"), false);
	assert_int_equal(rename(temp_path("2026-11"), temp_path(".gone")), 0);
	assert_int_equal(signature_keys_refresh(keys, NULL), 1);
	view_keys_changed(w.view);
	for (size_t i = 0; i < HM_COUNT(steps); i++) {
		const struct holding *h;

		fake_watch(steps[i].pod, false);
		h = cluster_find(w.cluster, POD_UID);
		assert_true(h != NULL && !h->unreadable && h->share_count == 1);
		assert_int_equal(h->state, steps[i].state);
		assert_string_equal(h->labels != NULL ? h->labels->text : "", steps[i].labels);
	}
	assert_int_equal(w.events, 0);
	/* What it holds is another: now it matters. */
	fake_watch(SIGNED_POD("13", "3001"), false);
	assert_true(cluster_find(w.cluster, POD_UID)->unreadable);
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
		str_addf(&text, SIGNED("%s", "9", "%s", "%s"), rows[i].uid, rows[i].memory, rows[i].signature);
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
		assert_string_equal(h->labels->text, "app=web\n");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_children_a_turn_is_short),
		cmocka_unit_test_setup_teardown(keys_that_come_later_are_asked, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(who_is_believed_is_not_asked_again, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(signatures_of_the_first_sync, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(changes_while_signatures_are_checked, temp_setup, temp_teardown),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 100;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
