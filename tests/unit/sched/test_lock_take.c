#include "sched/bind/lock_take.h"

#include "bind_world.h"

static void expect_lock(const char *version)
{
	hm_auto_str want = { 0 };

	str_addf(
		&want,
		"{\"metadata\":{\"uid\":\"un\",\"resourceVersion\":\"%s\",\"annotations\":{\"hami.io/mutex.lock\":\"20",
		version);
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/n1");
	assert_memory_equal(fake_open()->body, str_text(&want), want.n);
	assert_non_null(strstr(fake_open()->body, "Z,ns,p1\"}}}"));
}

static void the_lock_comes_first(void **state)
{
	(void)state;
	begin();
	bind_p1("n1");
	expect_lock("7");
	fake_answer(KUBE_DONE, 200, "{}");
	expect_binding("p1", "n1");
	fake_answer(KUBE_DONE, 201, "{}");
	assert_string_equal(w.answer, "");
	assert_int_equal(fake_count, 2); /* its agent removes the lock */
	end();
}

/* As the node is with this lock. */
static void answer_node(const char *value)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{\"metadata\":{\"name\":\"n1\",\"uid\":\"un\",\"resourceVersion\":\"8\",\"annotations\":{"
		 "\"hami.io/mutex.lock\":\"%s\"}}}",
		 value);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/n1");
	fake_answer(KUBE_DONE, 200, str_text(&text));
}

/* What the first patch wrote. */
static void answer_node_with_ours(void)
{
	const char *at = strstr(fake_requests[0].body, "mutex.lock\":\"");
	char value[64];

	assert_non_null(at);
	snprintf(value, sizeof value, "%.*s", (int)strlen("2026-08-21T06:20:39Z,ns,p1"),
		 at + strlen("mutex.lock\":\""));
	answer_node(value);
}

#define GIVEN_BACK                                                                                                     \
	"{\"metadata\":{\"uid\":\"un\",\"resourceVersion\":\"8\",\"annotations\":{\"hami.io/mutex.lock\":null}}}"

static void the_lock_is_given_back(void **state)
{
	(void)state;
	begin();
	bind_p1("n1");
	fake_answer(KUBE_DONE, 200, "{}");
	fake_answer(KUBE_NOT_FOUND, 404, "");
	assert_int_equal(w.answers, 1);
	assert_int_equal(held("n1"), 0);
	wait_requests(3);
	answer_node_with_ours();
	assert_string_equal(fake_open()->body, GIVEN_BACK);
	fake_answer(KUBE_DONE, 200, "{}");
	/* And again, for another pod. */
	reserve("p2", "n1");
	bind_pod("p2", "n1");
	wait_requests(5);
	end();
}

/* Of the same pod, but of another time: the next leader's. */
static void a_lock_of_another_leader_stays(void **state)
{
	(void)state;
	begin();
	bind_p1("n1");
	fake_answer(KUBE_DONE, 200, "{}");
	fake_answer(KUBE_NOT_FOUND, 404, "");
	wait_requests(3);
	answer_node("2026-08-21T06:20:39Z,ns,p1");
	fast_run(fake_loop, 1000);
	assert_int_equal(fake_count, 3);
	end();
}

/* The patch may have been done. */
static void a_lock_in_doubt_is_given_back(void **state)
{
	(void)state;
	for (unsigned stopped = 0; stopped < 2; stopped++) {
		begin();
		bind_p1("n1");
		if (stopped)
			binder_stop(w.binder, "we do not lead");
		else
			fake_answer(KUBE_NO_ANSWER, 0, "");
		assert_int_equal(w.answers, 1);
		assert_int_equal(held("n1"), 0);
		wait_requests(2);
		answer_node_with_ours();
		assert_string_equal(fake_open()->body, GIVEN_BACK);
		end();
	}
}

static void answer_free_node(const char *version)
{
	hm_auto_str text = { 0 };

	str_addf(&text, "{\"metadata\":{\"name\":\"n1\",\"uid\":\"un\",\"resourceVersion\":\"%s\"}}", version);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/n1");
	fake_answer(KUBE_DONE, 200, str_text(&text));
}

/* It may be done yet, while the node is as it was when it was sent: one of two patches under one version is refused. */
static void a_lock_that_may_come_yet(void **state)
{
	(void)state;
	for (unsigned row = 0; row < 4; row++) {
		begin();
		bind_p1("n1");
		if (row % 2)
			binder_stop(w.binder, "we do not lead");
		else
			fake_answer(KUBE_NO_ANSWER, 0, "");
		wait_requests(2);
		answer_free_node("7");
		expect_lock("7");
		if (row / 2)
			fake_answer(KUBE_CONFLICT, 409, ""); /* it has come */
		else
			fake_answer(KUBE_DONE, 200, "{}");
		wait_requests(4);
		answer_node_with_ours();
		assert_string_equal(fake_open()->body, GIVEN_BACK);
		fake_answer(KUBE_DONE, 200, "{}");
		fast_run(fake_loop, 1000);
		assert_int_equal(fake_count, 5);
		end();
	}
}

static void a_lock_that_cannot_come_any_more(void **state)
{
	static const struct {
		enum kube_outcome outcome;
		const char *version;
	} rows[] = { { KUBE_NO_ANSWER, "8" }, { KUBE_SERVER_ERROR, "8" }, { KUBE_FORBIDDEN, "7" } };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		begin();
		bind_p1("n1");
		fake_answer(rows[i].outcome, 0, "");
		wait_requests(2);
		answer_free_node(rows[i].version);
		fast_run(fake_loop, 1000);
		assert_int_equal(fake_count, 2);
		end();
	}
}

/* The node has the lock of a pod q, of now, and p1 asks for it: q is asked for. */
static void begin_locked(uint64_t lock_retry_ms)
{
	static char lock[64];
	hm_auto_str now = { 0 };

	begin_with((struct bind_more) { .lock_retry_ms = lock_retry_ms });
	str_add_utc(&now, clock_wall_ms());
	snprintf(lock, sizeof lock, "%sZ,other,q", str_text(&now));
	w.seen.lock = lock;
	bind_p1("n1");
	answer_node(lock); /* the watch may be late: it is read before anybody is turned away */
	assert_string_equal(fake_open()->path, "/api/v1/namespaces/other/pods/q");
}

/* ---- a pod of a group waits */

#define MEMBER(more) "{\"metadata\":{\"name\":\"p1\",\"uid\":\"p1\"" more "}"
#define GROUPED MEMBER(",\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}},\"spec\":{}")

static void begin_contended(void)
{
	begin_locked(10000);
	fake_answer(KUBE_DONE, 200, "{\"spec\":{},\"status\":{\"phase\":\"Pending\"}}");
	assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/p1");
}

static void a_group_waits_for_the_lock(void **state)
{
	static const char *const pods[] = {
		GROUPED,
		MEMBER("},\"spec\":{\"schedulingGroup\":{\"podGroupName\":\"g\"}}"),
	};
	struct bind_stats stats;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(pods); i++) {
		begin_contended();
		fake_answer(KUBE_DONE, 200, pods[i]);
		fast_run(fake_loop, 1000);
		assert_int_equal(fake_count, 3); /* what the watch says is enough for a while */
		assert_int_equal(w.answers, 0);
		binder_stats(w.binder, &stats);
		assert_int_equal(stats.in_hand, 0);
		w.seen.lock = NULL;
		wait_requests(4);
		expect_lock("7");
		fake_answer(KUBE_DONE, 200, "{}");
		expect_binding("p1", "n1");
		end();
	}
}

static void a_group_waits_for_so_long(void **state)
{
	(void)state;
	begin_contended();
	fake_answer(KUBE_DONE, 200, GROUPED);
	for (size_t n = 4; w.answers == 0; n += 2) {
		wait_requests(n);
		answer_node(w.seen.lock);
		fake_answer(KUBE_DONE, 200, "{\"spec\":{},\"status\":{\"phase\":\"Pending\"}}");
	}
	assert_string_equal(w.answer, "timed out after 10s waiting for node n1 to be unlocked: node lock contention");
	assert_int_equal(held("n1"), 0);
	assert_in_range(fake_count, 9, 15); /* each 2 s the API server is asked */
	end();
}

static void others_do_not_wait(void **state)
{
	(void)state;
	begin_contended();
	fake_answer(KUBE_DONE, 200, MEMBER("},\"spec\":{}"));
	assert_string_equal(w.answer, "node n1 has been locked within 5m0s: node lock contention");
	assert_int_equal(held("n1"), 0);
	end();
}

static void a_group_waits_for_its_own(void **state)
{
	(void)state;
	begin_with((struct bind_more) { .lock_retry_ms = 10000 });
	reserve("p2", "n1");
	reserve("p1", "n1");
	bind_pod("p2", "n1");
	wait_requests(1);
	bind_pod("p1", "n1");
	wait_requests(2);
	fake_answer(KUBE_DONE, 200, GROUPED);
	fast_run(fake_loop, 1000);
	assert_int_equal(fake_count, 2);
	fake_answer(KUBE_DONE, 200, "{}"); /* p2 has the lock */
	fake_answer(KUBE_DONE, 201, "{}");
	wait_requests(4);
	expect_lock("7"); /* its agent is through, as the watch says */
	end();
}

static void one_at_a_time_on_a_node(void **state)
{
	(void)state;
	begin();
	reserve("p1", "n1");
	reserve("p2", "n1");
	bind_pod("p1", "n1");
	wait_requests(1);
	bind_pod("p2", "n1");
	wait_answers(1);
	assert_string_equal(w.answer, "node n1 is locked: node lock contention");
	assert_int_equal(fake_count, 1);
	assert_int_equal(held("n1"), 3000);
	end();
}

static void locked_by_another(void **state)
{
	static const struct {
		const char *pod; /* the holder, as the API server has it; NULL: 404 */
		bool taken;
	} rows[] = {
		{ "{\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Pending\"}}", false },
		{ "{\"spec\":{},\"status\":{\"phase\":\"Pending\"}}", false },
		{ "{\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Failed\"}}", true },
		{ "{\"spec\":{\"nodeName\":\"n2\"},\"status\":{\"phase\":\"Running\"}}", true },
		{ NULL, true },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		begin_locked(0);
		if (rows[i].pod != NULL)
			fake_answer(KUBE_DONE, 200, rows[i].pod);
		else
			fake_answer(KUBE_NOT_FOUND, 404, "");
		if (rows[i].taken) {
			expect_lock("8");
		} else {
			assert_string_equal(w.answer, "node n1 has been locked within 5m0s: node lock contention");
			assert_int_equal(held("n1"), 0);
		}
		end();
	}
}

static void a_conflict_is_tried_again(void **state)
{
	(void)state;
	begin();
	bind_p1("n1");
	for (size_t i = 1; i < LOCK_TRIES; i++) {
		fake_answer(KUBE_CONFLICT, 409, "");
		wait_requests(2 * i);
		fake_answer(KUBE_DONE, 200,
			    "{\"metadata\":{\"name\":\"n1\",\"uid\":\"un\",\"resourceVersion\":\"9\"}}");
		expect_lock("9");
	}
	fake_answer(KUBE_CONFLICT, 409, "");
	assert_string_equal(w.answer, "node lock of n1: 409 as the test says");
	end();
}

static void what_a_lock_says(void **state)
{
	/* 2026-08-21T06:20:39Z */
	const int64_t at = 1787293239;
	static const struct {
		const char *value;
		int64_t after_s;
		enum lock_says says;
	} rows[] = {
		{ NULL, 0, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,other,q", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", 300, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", 301, LOCK_FREE },
		{ "2026-08-21T08:20:39+02:00,other,q", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", -10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", -301, LOCK_FREE }, /* of a clock that is wrong */
		{ "2026-08-21T06:20:39Z,ns,p1", 10, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,other,p1", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,ns,xp1", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z", 10, LOCK_HELD },
		{ "2026-08-21T06:20:39Z", 301, LOCK_FREE },
		{ "garbage", 10, LOCK_FREE },
		{ "", 10, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,other", 10, LOCK_FREE },
		{ "yesterday,other,q", 10, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,a,b,c", 10, LOCK_FREE },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (lock_says(rows[i].value, "ns", "p1", at + rows[i].after_s, 300000) != rows[i].says)
			fail_msg("row %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lock_comes_first),
		cmocka_unit_test(the_lock_is_given_back),
		cmocka_unit_test(a_lock_of_another_leader_stays),
		cmocka_unit_test(a_lock_in_doubt_is_given_back),
		cmocka_unit_test(a_lock_that_may_come_yet),
		cmocka_unit_test(a_lock_that_cannot_come_any_more),
		cmocka_unit_test(a_group_waits_for_the_lock),
		cmocka_unit_test(a_group_waits_for_so_long),
		cmocka_unit_test(others_do_not_wait),
		cmocka_unit_test(a_group_waits_for_its_own),
		cmocka_unit_test(one_at_a_time_on_a_node),
		cmocka_unit_test(locked_by_another),
		cmocka_unit_test(a_conflict_is_tried_again),
		cmocka_unit_test(what_a_lock_says),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 30;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
