#include "sched/bind/bind.h"

#include "bind_world.h"
#include "sched/bind/bind_label.h"

static void one_call(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	expect_binding("p1", "late");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BINDING);
	fake_answer(KUBE_DONE, 201, "{}");
	assert_int_equal(w.answers, 1);
	assert_string_equal(w.answer, "");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	assert_int_equal(fake_count, 1);
	assert_int_equal(w.events, 0);
	end();
}

static void what_is_refused_is_rolled_back(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_NOT_FOUND, 404, "");
	assert_int_equal(w.answers, 1);
	assert_string_equal(w.answer, "404 as the test says");
	assert_string_equal(w.event, "ns/p1 Warning BindingFailed: 404 as the test says");
	assert_int_equal(held("late"), 0);
	end();
}

#define POD(uid, node, time)                                                                                           \
	"{\"metadata\":{\"name\":\"p1\",\"uid\":\"" uid "\",\"annotations\":{\"hami.io/vgpu-time\":\"" time            \
	"\",\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,30:;;\"}},\"spec\":{\"nodeName\":\"" node "\"}}"

static void somebody_else_has_bound_it(void **state)
{
	static const char *const pods[] = {
		POD("p1", "other", "1"), POD("another", "late", "1"),
		POD("p1", "late", "1"), /* by another placement than ours */
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(pods); i++) {
		begin();
		bind_p1("late");
		fake_answer(KUBE_CONFLICT, 409, "");
		assert_int_equal(w.answers, 0);
		assert_int_equal(fake_open()->verb, KUBE_GET);
		assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/p1");
		assert_true(held("late") > 0);
		fake_answer(KUBE_DONE, 200, pods[i]);
		assert_string_equal(w.answer, "409 as the test says");
		assert_int_equal(held("late"), 0);
		end();
	}
}

static void the_answer_was_lost(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	assert_int_equal(w.answers, 0);
	assert_true(held("late") > 0);
	wait_requests(2); /* the very same again: of two that arrive the second is refused */
	assert_string_equal(fake_open()->body, fake_requests[0].body);
	fake_answer(KUBE_CONFLICT, 409, "");
	assert_int_equal(fake_open()->verb, KUBE_GET);
	answer_ours();
	assert_int_equal(w.answers, 1);
	assert_string_equal(w.answer, "");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	end();
}

/* The API server is away: kube-scheduler hears in time, but the promise stands until it is certain. */
static void nobody_knows(void **state)
{
	struct hm_err e;

	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_SERVER_ERROR, 500, "");
	wait_requests(2);
	wait_answers(1); /* the second one hangs */
	assert_memory_equal(w.answer, "it is not known yet whether the pod is bound: ", 46);
	assert_true(held("late") > 0);
	assert_int_equal(cluster_may_place(w.cluster, "p1", &e), -HM_EEXIST);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(3);
	/* Nobody waits any more, so nothing new is sent; the pod says. */
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(4);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fast_moved_ms += 30000; /* what was sent cannot come any more */
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"uid\":\"p1\"},\"spec\":{}}");
	assert_int_equal(held("late"), 0);
	assert_int_equal(w.answers, 1);
	end();
}

/* "Not bound", said a moment after the Binding was sent, is no proof that it will not be. */
static void not_yet_is_not_never(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	binder_stop(w.binder, "we do not lead");
	assert_string_equal(w.answer, "we do not lead");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(2);
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"uid\":\"p1\"},\"spec\":{}}");
	assert_true(held("late") > 0);
	wait_requests(3);
	answer_ours();
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	assert_int_equal(w.answers, 1);
	end();
}

/* ---- what was not promised */

static void a_pod_without_a_promise(void **state)
{
	static const char plain[] = "{\"metadata\":{\"uid\":\"p1\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}";
	static const char other[] = "{\"metadata\":{\"uid\":\"p2\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}";
	static const char asks[] =
		"{\"metadata\":{\"uid\":\"p1\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}";

	(void)state;
	begin();
	bind_pod("p1", "late");
	wait_requests(1);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200, asks);
	assert_string_equal(w.answer, "nothing is reserved for the pod on this node: it is to be scheduled again");
	bind_pod("p1", "late");
	wait_requests(2);
	fake_answer(KUBE_DONE, 200, other);
	assert_string_equal(w.answer, "the pod is another one of this name");
	bind_pod("p1", "late");
	wait_requests(3);
	fake_answer(KUBE_DONE, 200, plain);
	assert_int_equal(fake_open()->verb, KUBE_POST);
	assert_non_null(strstr(fake_open()->body, "\"annotations\":{}"));
	fake_answer(KUBE_DONE, 201, "{}");
	assert_int_equal(w.answers, 3);
	assert_string_equal(w.answer, "");
	end();
}

static void another_node_than_promised(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "n1");
	wait_answers(1);
	assert_string_equal(w.answer, "nothing is reserved on node n1 for pod p1");
	assert_int_equal(fake_count, 0);
	assert_true(held("late") > 0); /* that promise was not asked for */
	end();
}

static void a_node_that_is_gone(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	cluster_remove_node(w.cluster, "late");
	bind_pod("p1", "late");
	wait_answers(1);
	assert_string_equal(w.answer, "failed to get node late");
	assert_null(cluster_find(w.cluster, "p1"));
	end();
}

/* ---- many */

static void ten_are_in_hand(void **state)
{
	struct bind_stats stats;

	(void)state;
	begin();
	for (unsigned i = 0; i < 12; i++) {
		char uid[8];

		snprintf(uid, sizeof uid, "p%u", i);
		reserve(uid, "late");
		bind_pod(uid, "late");
	}
	wait_requests(10);
	fast_run(fake_loop, 1000);
	assert_int_equal(fake_count, 10);
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.waiting, 2);
	fake_answer(KUBE_DONE, 201, "{}");
	wait_requests(11);
	assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/p10/binding?timeout=10000ms");
	binder_stop(w.binder, "we do not lead");
	assert_int_equal(w.answers, 12);
	/* What was on its way is followed; what waited was promised by a leader that is none any more. */
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.in_doubt, 10);
	assert_int_equal(held("late"), 11 * 3000);
	assert_int_equal(stats.waiting, 0);
	fake_answer(KUBE_DONE, 201, "{}");
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.in_doubt, 9);
	end();
}

static void a_hundred_are_in_doubt(void **state)
{
	struct bind_stats stats;
	char uid[8];

	(void)state;
	begin();
	for (unsigned i = 0; i < BIND_IN_DOUBT; i++) {
		snprintf(uid, sizeof uid, "p%u", i);
		reserve(uid, "late");
		bind_pod(uid, "late");
		binder_stop(w.binder, "we do not lead");
	}
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.in_doubt, BIND_IN_DOUBT);
	reserve("q", "late");
	bind_pod("q", "late");
	wait_answers(BIND_IN_DOUBT + 1);
	assert_string_equal(w.answer, "the API server does not answer");
	assert_null(cluster_find(w.cluster, "q"));
	assert_int_equal(fake_count, BIND_IN_DOUBT);
	fake_answer(KUBE_DONE, 201, "{}");
	reserve("q", "late");
	bind_pod("q", "late");
	wait_requests(BIND_IN_DOUBT + 1);
	end();
}

static void on_idle(void *arg)
{
	*(bool *)arg = true;
}

static void idle_when_all_is_known(void **state)
{
	bool idle = false;

	(void)state;
	begin();
	bind_p1("late");
	binder_stop(w.binder, "the scheduler is ending");
	binder_when_idle(w.binder, on_idle, &idle);
	fast_run(fake_loop, 1000);
	assert_false(idle);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(2);
	assert_false(idle);
	answer_ours();
	fast_run(fake_loop, 100);
	assert_true(idle);
	end();
}

static void what_is_not_known_at_the_end_is_named(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fast_forget_log();
	end();
	assert_int_equal(fast_said("ended without knowing whether a pod is bound"), 1);
	assert_int_equal(fast_said("pod=p1"), 1);
}

/* ---- HAMi's label */

static void labelled(void **state)
{
	(void)state;
	begin_with((struct bind_more) { .label_pods = true });
	bind_p1("late");
	fake_answer(KUBE_DONE, 201, "{}");
	assert_string_equal(w.answer, ""); /* nobody waits for it */
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/p1");
	assert_string_equal(fake_open()->body,
			    "{\"metadata\":{\"uid\":\"p1\",\"labels\":{\"hami.io/vgpu-node\":\"late\"}}}");
	fake_answer(KUBE_SERVER_ERROR, 500, "");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	end();
}

static void names_that_are_no_labels(void **state)
{
	static const char x63[] = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0";
	static const char x64[] = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz01";

	(void)state;
	assert_int_equal(strlen(x63), 63);
	assert_true(bind_label_can_say(x63));
	assert_true(bind_label_can_say("n1.example-x_y.com"));
	assert_false(bind_label_can_say(x64));
	assert_false(bind_label_can_say(""));
	assert_false(bind_label_can_say("-n"));
	assert_false(bind_label_can_say("n."));
	assert_false(bind_label_can_say("n/x"));
}

static void nothing_is_bound_while_barred(void **state)
{
	(void)state;
	begin();
	w.bar = "we do not lead";
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_answers(1);
	assert_string_equal(w.answer, "we do not lead");
	assert_int_equal(fake_count, 0);
	assert_int_equal(held("late"), 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_call),
		cmocka_unit_test(what_is_refused_is_rolled_back),
		cmocka_unit_test(somebody_else_has_bound_it),
		cmocka_unit_test(the_answer_was_lost),
		cmocka_unit_test(nobody_knows),
		cmocka_unit_test(not_yet_is_not_never),
		cmocka_unit_test(a_hundred_are_in_doubt),
		cmocka_unit_test(idle_when_all_is_known),
		cmocka_unit_test(what_is_not_known_at_the_end_is_named),
		cmocka_unit_test(labelled),
		cmocka_unit_test(names_that_are_no_labels),
		cmocka_unit_test(a_pod_without_a_promise),
		cmocka_unit_test(another_node_than_promised),
		cmocka_unit_test(a_node_that_is_gone),
		cmocka_unit_test(ten_are_in_hand),
		cmocka_unit_test(nothing_is_bound_while_barred),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 30;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
