/* Who may send a Binding, and when it is over (sched/bind/bind.h). */
#include "bind_world.h"

#define PENDING "{\"metadata\":{\"name\":\"p1\",\"uid\":\"p1\"},\"spec\":{}}"

/* The question that is open was asked before the last Binding is over: that may have come after the pod was read. Only
 * what is asked after that is believed. */
static void expect_free_when_asked_after(uint64_t ms)
{
	size_t asked = fake_count;

	fast_moved_ms += ms;
	fake_answer(KUBE_DONE, 200, PENDING);
	assert_true(held("late") > 0);
	wait_requests(asked + 1);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200, PENDING);
	assert_int_equal(held("late"), 0);
}

/* A Binding that is slow, and lands between the reading of the pod and its answer. */
static void it_lands_while_the_pod_is_asked_for(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(2);
	fake_answer(KUBE_FORBIDDEN, 403, "");
	wait_requests(3);
	fast_moved_ms += 20000;
	fake_answer(KUBE_DONE, 200, PENDING);
	assert_true(held("late") > 0);
	wait_requests(4);
	answer_ours();
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	end();
}

/* What was certain before is so still: an answer to the second Binding says nothing of the first. */
static void refused_the_second_time(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_SERVER_ERROR, 504, "");
	wait_requests(2);
	fake_answer(KUBE_FORBIDDEN, 403, "");
	assert_string_equal(w.answer, "403 as the test says");
	assert_true(held("late") > 0);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	answer_ours();
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	end();
}

/* 409, and the pod is not bound: only where nothing else of ours may come is it certain. */
static void a_conflict_that_bound_nothing(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(2);
	fake_answer(KUBE_CONFLICT, 409, "");
	fake_answer(KUBE_DONE, 200, PENDING);
	assert_true(held("late") > 0);
	wait_requests(4);
	expect_free_when_asked_after(20000);
	end();
}

/* ---- who may send, and when it is over */

static void lead_is_asked_at_each_send(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_SERVER_ERROR, 500, "");
	w.bar = "we do not lead";
	wait_requests(2);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	assert_string_equal(w.answer, "we do not lead");
	assert_true(held("late") > 0);
	end();
}

static void lead_is_asked_when_the_lock_is_taken(void **state)
{
	(void)state;
	begin();
	bind_p1("n1");
	w.bar = "we do not lead";
	fake_answer(KUBE_DONE, 200, "{}");
	assert_string_equal(w.answer, "we do not lead");
	assert_int_equal(held("n1"), 0);
	wait_requests(2);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/n1"); /* the lock is given back */
	end();
}

/* "Not now" is certain: nothing was done. */
static void not_now(void **state)
{
	static const struct {
		enum kube_outcome outcome;
		int http;
	} rows[] = { { KUBE_TOO_MANY, 429 }, { KUBE_UNAUTHORIZED, 401 } };
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		begin();
		bind_p1("late");
		assert_true(fake_open()->once);
		fake_retry_after_ms = 3000;
		fake_answer(rows[i].outcome, rows[i].http, "");
		fast_run(fake_loop, 1500);
		assert_int_equal(fake_count, 1);
		wait_requests(2);
		expect_binding("p1", "late");
		fake_answer(rows[i].outcome, rows[i].http, "");
		binder_stop(w.binder, "we do not lead");
		assert_string_equal(w.answer, "we do not lead");
		assert_int_equal(held("late"), 0);
		fast_run(fake_loop, 5000);
		assert_int_equal(fake_count, 2);
		end();
	}
}

/* The same while a Binding from before is in doubt. */
static void not_now_after_silence(void **state)
{
	(void)state;
	begin();
	bind_p1("late");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(2);
	fake_answer(KUBE_TOO_MANY, 429, "");
	binder_stop(w.binder, "we do not lead");
	assert_true(held("late") > 0);
	wait_requests(3);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	end();
}

/* The time that a Binding may be on its way counts from when it was sent, not from the first try. */
static void silence_after_not_now(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "late");
	for (size_t i = 1; i < 3; i++) {
		wait_requests(i);
		fake_answer(KUBE_TOO_MANY, 429, "");
		fast_moved_ms += 15000;
	}
	wait_requests(3);
	binder_stop(w.binder, "we do not lead");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(4);
	fake_answer(KUBE_DONE, 200, PENDING);
	assert_true(held("late") > 0);
	wait_requests(5);
	expect_free_when_asked_after(20000);
	end();
}

static void our_own_rate(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	fake_refuses = true;
	fake_refusal = HM_EAGAIN;
	bind_pod("p1", "late");
	fast_run(fake_loop, 1000);
	assert_int_equal(w.answers, 0);
	fake_refuses = false;
	fake_refusal = HM_ENOMEM;
	wait_requests(1);
	expect_binding("p1", "late");
	end();
}

/* Half to get there and half to be done, all within what is left of the Lease. */
static void over_before_another_may_lead(void **state)
{
	static const struct {
		uint64_t alone_ms;
		uint32_t timeout_ms;
		const char *path;
	} rows[] = {
		{ UINT64_MAX, 10000, "/api/v1/namespaces/ns/pods/p1/binding?timeout=10000ms" },
		{ 20001, 10000, "/api/v1/namespaces/ns/pods/p1/binding?timeout=10000ms" },
		{ 5001, 2500, "/api/v1/namespaces/ns/pods/p1/binding?timeout=2500ms" },
		{ 200, 100, "/api/v1/namespaces/ns/pods/p1/binding?timeout=100ms" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		begin();
		w.alone_ms = rows[i].alone_ms;
		bind_p1("late");
		assert_int_equal(fake_open()->timeout_ms, rows[i].timeout_ms);
		assert_string_equal(fake_open()->path, rows[i].path);
		end();
	}
	begin();
	w.alone_ms = 199;
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_answers(1);
	assert_string_equal(w.answer, "this replica's Lease is nearly over");
	assert_int_equal(held("late"), 0);
	assert_int_equal(fake_count, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_the_second_time),
		cmocka_unit_test(it_lands_while_the_pod_is_asked_for),
		cmocka_unit_test(a_conflict_that_bound_nothing),
		cmocka_unit_test(lead_is_asked_at_each_send),
		cmocka_unit_test(lead_is_asked_when_the_lock_is_taken),
		cmocka_unit_test(not_now),
		cmocka_unit_test(not_now_after_silence),
		cmocka_unit_test(silence_after_not_now),
		cmocka_unit_test(our_own_rate),
		cmocka_unit_test(over_before_another_may_lead),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 30;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
