/* The engine: server and client back to back, without sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "rpc/limits.h"
#include "unit/rpc/pair.h"

static void start(struct pair *p, size_t step)
{
	struct hm_err e;

	if (pair_init(p, step, &e) < 0)
		fail_msg("%s", e.msg);
}

static void call(struct pair *p, const char *path, const char *text, uint64_t timeout_ms)
{
	struct hm_err e;

	if (pair_call(p, path, text, timeout_ms, &e) < 0)
		fail_msg("%s", e.msg);
}

static void expect(struct pair *p, const char *log)
{
	assert_string_equal(str_text(&p->log), log);
	str_clear(&p->log);
}

static const struct {
	const char *path, *text, *log;
} conversations[] = {
	{ "/t.T/Echo", "hello", "call Echo 5 hello;message 5 hello;done OK ;" },
	{ "/t.T/Echo", "", "call Echo 0 ;message 0 ;done OK ;" },
	{ "/t.T/Three", "x", "call Three 1 x;message 4 eins;message 0 ;message 4 drei;done OK ;" },
	{ "/t.T/Fail", "x", "call Fail 1 x;done NOT_FOUND no %;" },
	{ "/t.T/None", "x", "done UNIMPLEMENTED unknown method /t.T/None;" },
	{ "/t.T/Latest", "x", "call Latest 1 x;message 200000 ;done OK ;" },
};

static void test_calls(void **state)
{
	static const size_t steps[] = { 1, 2, 3, 5, 9, 10, 64, 1000, 65536 };
	struct pair p;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(steps); i++) {
		start(&p, steps[i]);
		for (size_t k = 0; k < HM_COUNT(conversations); k++) {
			call(&p, conversations[k].path, conversations[k].text, 0);
			assert_true(pair_run(&p));
			expect(&p, conversations[k].log);
		}
		assert_true(rpc_conn_is_greeted(p.server) && rpc_conn_is_greeted(p.client));
		assert_int_equal(rpc_conn_open_streams(p.server), 0);
		assert_int_equal(rpc_conn_open_streams(p.client), 0);
		pair_fini(&p);
	}
}

/* What a client sent in a conversation with calls of every kind, a cancel and a held call at the end. */
static void record(struct str *wire)
{
	struct pair p;

	start(&p, 65536);
	p.record = true;
	for (size_t k = 0; k < HM_COUNT(conversations); k++)
		call(&p, conversations[k].path, conversations[k].text, 0);
	assert_true(pair_run(&p));
	call(&p, "/t.T/Hold", "cancelled", 60000);
	assert_true(pair_run(&p));
	rpc_request_cancel(p.request);
	call(&p, "/t.T/Hold", "held", 0);
	assert_true(pair_run(&p));
	str_add_n(wire, p.to_server.p, p.to_server.n);
	pair_fini(&p);
}

static void test_same_bytes_at_every_step_size(void **state)
{
	hm_auto_str wire = { 0 }, first = { 0 };

	(void)state;
	record(&wire);
	assert_in_range(wire.n, 300, 20000);
	for (size_t step = 1; step <= wire.n; step++) {
		struct pair p;

		start(&p, step);
		for (size_t at = 0; at < wire.n; at += step) {
			size_t n = HM_MIN(step, wire.n - at);

			assert_int_equal(rpc_conn_feed(p.server, (const uint8_t *)wire.p + at, n, 1000), 0);
			if (step % 2 == 0) /* the order of reading and writing must not matter either */
				drain(p.server);
		}
		if (step == 1) {
			str_add(&first, str_text(&p.log));
			assert_non_null(strstr(str_text(&first), "call Echo 5 hello;call Echo 0 ;call Three 1 x;"));
			assert_non_null(strstr(str_text(&first), "call Hold 9 cancelled;gone Hold;call Hold 4 held;"));
		}
		assert_string_equal(str_text(&p.log), str_text(&first));
		pair_fini(&p);
	}
}

static void test_many_at_once(void **state)
{
	struct pair p;
	size_t done = 0;

	(void)state;
	start(&p, 65536);
	for (int i = 0; i < 300; i++) /* three times what the server takes at once */
		call(&p, "/t.T/Echo", "hello", 0);
	assert_true(pair_run(&p));
	for (const char *at = str_text(&p.log); (at = strstr(at, "done OK")) != NULL; at++)
		done++;
	assert_int_equal(done, 300);
	pair_fini(&p);
}

static void test_large_request(void **state)
{
	struct rpc_reply reply = pair_reply;
	struct hm_err e;
	struct pair p;
	uint8_t *bytes = calloc(1, RPC_MAX_SEND_BYTES + 1);

	(void)state;
	start(&p, 65536);
	reply.arg = &p;
	assert_int_equal(rpc_conn_call(p.client, 0, "/t.T/Hold", bytes, RPC_MAX_SEND_BYTES + 1, 0, &reply, NULL, &e),
			 -HM_ELIMIT);
	assert_non_null(strstr(e.msg, "4194305"));
	assert_int_equal(rpc_conn_call(p.client, 0, "/t.T/Hold", bytes, RPC_MAX_SEND_BYTES, 0, &reply, NULL, &e), 0);
	assert_true(pair_run(&p));
	assert_int_equal(rpc_call_send(p.held, bytes, RPC_MAX_SEND_BYTES + 1, &e), -HM_ELIMIT);
	assert_non_null(strstr(e.msg, "4194305"));
	rpc_call_reply(p.held, bytes, RPC_MAX_SEND_BYTES);
	p.held = NULL;
	assert_true(pair_run(&p));
	assert_non_null(strstr(str_text(&p.log), "call Hold 4194304 ;message 4194304 ;done OK ;"));
	free(bytes);
	pair_fini(&p);
}

static void test_deadline_on_both_sides(void **state)
{
	struct pair p;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Hold", "x", 250);
	assert_int_equal(rpc_conn_next_tick_ms(p.client), 1250);
	assert_true(pair_run(&p));
	assert_int_equal(rpc_conn_next_tick_ms(p.server), 1250);
	rpc_conn_tick(p.server, 1249);
	expect(&p, "call Hold 1 x;");
	rpc_conn_tick(p.server, 1250);
	expect(&p, "gone Hold;");
	assert_true(pair_run(&p));
	expect(&p, "done DEADLINE_EXCEEDED deadline exceeded;");

	call(&p, "/t.T/Send", "x", 250);
	assert_true(pair_run(&p));
	expect(&p, "call Send 1 x;message 1 x;");
	rpc_conn_tick(p.client, 1250);
	expect(&p, "done DEADLINE_EXCEEDED no answer within 250 ms;");
	assert_true(pair_run(&p));
	expect(&p, "gone Send;");
	rpc_conn_tick(p.server, 99999);
	assert_int_equal(rpc_conn_next_tick_ms(p.server), UINT64_MAX);
	pair_fini(&p);
}

static void test_deadlines_of_several(void **state)
{
	struct pair p;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Hold", "x", 400);
	call(&p, "/t.T/Send", "x", 250);
	call(&p, "/t.T/Hold", "x", 600);
	assert_int_equal(rpc_conn_next_tick_ms(p.client), 1250);
	assert_true(pair_run(&p));
	str_clear(&p.log);
	rpc_conn_tick(p.server, 1250);
	expect(&p, "gone Send;");
	assert_int_equal(rpc_conn_next_tick_ms(p.server), 1400);
	rpc_conn_tick(p.server, 1400);
	expect(&p, "gone Hold;");
	assert_int_equal(rpc_conn_next_tick_ms(p.server), 1600);
	pair_fini(&p);
}

static void test_cancel(void **state)
{
	struct pair p;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Hold", "x", 0);
	rpc_request_cancel(p.request); /* before anything was sent */
	expect(&p, "done CANCELLED cancelled;");
	assert_true(pair_run(&p));
	expect(&p, "");
	call(&p, "/t.T/Hold", "x", 0);
	assert_true(pair_run(&p));
	rpc_request_cancel(p.request);
	assert_true(pair_run(&p));
	expect(&p, "call Hold 1 x;done CANCELLED cancelled;gone Hold;");
	p.cancel_on_message = true; /* inside the callback: no more messages come */
	call(&p, "/t.T/Three", "x", 0);
	assert_true(pair_run(&p));
	expect(&p, "call Three 1 x;message 4 eins;done CANCELLED cancelled;");
	assert_int_equal(rpc_conn_open_streams(p.server), 0);
	assert_int_equal(rpc_conn_open_streams(p.client), 0);
	pair_fini(&p);
}

static void test_close_by_the_server(void **state)
{
	struct pair p;
	struct hm_err e;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Send", "x", 0);
	assert_true(pair_run(&p));
	str_clear(&p.log);
	assert_int_equal(rpc_call_send(p.held, (const uint8_t *)"not started", 11, &e), 0);
	rpc_conn_close(p.server);
	expect(&p, "gone Send;");
	assert_true(pair_run(&p));
	expect(&p, "done UNAVAILABLE the server is shutting down;");
	assert_int_equal(pair_call(&p, "/t.T/Echo", "x", 0, &e), -HM_EAGAIN);
	pair_fini(&p);
}

static void test_close_by_the_client(void **state)
{
	struct pair p;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Hold", "x", 0);
	assert_true(pair_run(&p));
	str_clear(&p.log);
	rpc_conn_close(p.client);
	expect(&p, "done CANCELLED the client was closed;");
	assert_true(pair_run(&p));
	expect(&p, "gone Hold;");
	pair_fini(&p);
}

static void test_lost(void **state)
{
	struct pair p;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Hold", "x", 0);
	assert_true(pair_run(&p));
	str_clear(&p.log);
	rpc_conn_lost(p.client);
	expect(&p, "done UNAVAILABLE connection lost;");
	rpc_conn_lost(p.server);
	expect(&p, "gone Hold;");
	assert_true(rpc_conn_is_over(p.client));
	pair_fini(&p);
}

static void test_silence(void **state)
{
	struct pair p;

	(void)state;
	start(&p, 65536);
	assert_int_equal(rpc_conn_next_tick_ms(p.server), 1000 + RPC_SETTINGS_TIMEOUT_MS);
	rpc_conn_tick(p.server, 999 + RPC_SETTINGS_TIMEOUT_MS);
	assert_false(rpc_conn_is_over(p.server));
	rpc_conn_tick(p.server, 1000 + RPC_SETTINGS_TIMEOUT_MS);
	assert_true(rpc_conn_is_over(p.server));
	pair_fini(&p);
}

/* The peer never reads: what waits for it is bounded, and the call that goes beyond hears why. */
static void test_a_peer_that_does_not_read(void **state)
{
	uint8_t *bytes = calloc(1, RPC_MAX_SEND_BYTES);
	struct hm_err e = { 0 };
	struct pair p;
	size_t sent = 0;

	(void)state;
	start(&p, 65536);
	call(&p, "/t.T/Hold", "x", 0);
	assert_true(pair_run(&p));
	while (sent < 100 && rpc_call_send(p.held, bytes, RPC_MAX_SEND_BYTES, &e) == 0)
		sent++;
	assert_int_equal(sent, RPC_MAX_BUFFERED_BYTES / RPC_MAX_SEND_BYTES - 1);
	assert_int_equal(e.code, HM_ELIMIT);
	assert_non_null(strstr(e.msg, "does not read"));
	rpc_call_fail(p.held, &e);
	p.held = NULL;
	assert_true(pair_run(&p));
	assert_non_null(strstr(str_text(&p.log), "done RESOURCE_EXHAUSTED"));
	free(bytes);
	pair_fini(&p);
}

/* ---- memory ---- */

static int scenario(void *arg)
{
	struct hm_err e;
	struct pair p;
	int good = 0;

	(void)arg;
	if (pair_init(&p, 65536, &e) < 0)
		return -1;
	for (size_t k = 0; k < HM_COUNT(conversations); k++) {
		str_clear(&p.log);
		if (pair_call(&p, conversations[k].path, conversations[k].text, 500, &e) == 0 && pair_run(&p) &&
		    strcmp(str_text(&p.log), conversations[k].log) == 0)
			good++;
	}
	str_clear(&p.log);
	if (pair_call(&p, "/t.T/Hold", "x", 0, &e) == 0 && pair_run(&p) && p.held != NULL)
		rpc_conn_close(p.server);
	if (pair_run(&p) && strstr(str_text(&p.log), "done UNAVAILABLE the server is") != NULL)
		good++;
	pair_fini(&p);
	return good == (int)HM_COUNT(conversations) + 1 ? 0 : -1;
}

/* nghttp2 allocates through us, so this reaches inside it. Some failures it hides (a frame that may wait), so only
 * leaks and the undisturbed run are judged. */
static void test_memory(void **state)
{
	struct sweep_result r = sweep_run(scenario, NULL);

	(void)state;
	assert_false(r.failed);
	assert_in_range(r.allocations, 100, 100000);
	if (r.leaked > 0)
		fail_msg("%zu blocks leaked when allocation %zu failed", r.leaked, r.leaked_at);
}

/* One failed allocation costs one call or one connection: afterwards a new pair works (state is nowhere else), and the
 * call that failed said so. */
static int scenario_one_call(void *arg)
{
	struct hm_err e;
	struct pair p;
	bool good;

	(void)arg;
	if (pair_init(&p, 65536, &e) < 0)
		return -1;
	good = pair_call(&p, "/t.T/Echo", "hello", 500, &e) == 0 && pair_run(&p) &&
	       strcmp(str_text(&p.log), "call Echo 5 hello;message 5 hello;done OK ;") == 0;
	pair_fini(&p);
	return good ? 0 : -1;
}

static void test_memory_of_one_call(void **state)
{
	struct sweep_result r = sweep_run(scenario_one_call, NULL);

	(void)state;
	assert_false(r.failed);
	assert_int_equal(r.leaked, 0);
	assert_in_range(r.swallowed, 0, r.allocations / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_same_bytes_at_every_step_size),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_large_request),
		cmocka_unit_test(test_deadline_on_both_sides),
		cmocka_unit_test(test_deadlines_of_several),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_close_by_the_server),
		cmocka_unit_test(test_close_by_the_client),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_a_peer_that_does_not_read),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_of_one_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
