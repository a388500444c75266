/* The server's engine against a peer that says what it likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/limits.h"
#include "unit/rpc/pair.h"
#include "unit/rpc/probe.h"

#define HEAD(method, path, authority, type)                                                                            \
	{ ":method", method }, { ":scheme", "http" }, { ":path", path }, { ":authority", authority },                  \
	{                                                                                                              \
		"content-type", type                                                                                   \
	}
#define ECHO_HEAD HEAD("POST", "/t.T/Echo", "localhost", "application/grpc")
#define BODY(text) text, sizeof text - 1
#define OK_ECHO                                                                                                        \
	"h :status: 200;h content-type: application/grpc;h grpc-accept-encoding: identity;data 7;h grpc-status: "      \
	"0;end;"
#define ERROR(status, message)                                                                                         \
	"h :status: 200;h content-type: application/grpc;h grpc-accept-encoding: identity;h grpc-status: " status      \
	";h grpc-message: " message ";end;"

static const struct request {
	const char *name;
	struct probe_header headers[10];
	const char *body;
	size_t body_n;
	const char *heard, *users;
} requests[] = {
	{ "plain", { ECHO_HEAD }, BODY("\0\0\0\0\x02hi"), OK_ECHO, "call Echo 2 hi;" },
	{ "a path as authority (kubelet before 1.26)",
	  { HEAD("POST", "/t.T/Echo", "/var/lib/kubelet/device-plugins/x.sock", "application/grpc") },
	  BODY("\0\0\0\0\x02hi"),
	  OK_ECHO,
	  "call Echo 2 hi;" },
	{ "an escaped path as authority",
	  { HEAD("POST", "/t.T/Echo", "%2Fvar%2Flib%2Fx.sock", "application/grpc+proto") },
	  BODY("\0\0\0\0\x02hi"),
	  OK_ECHO,
	  "call Echo 2 hi;" },
	{ "content-type with parameters",
	  { HEAD("POST", "/t.T/Echo", "x", "application/grpc;charset=utf-8") },
	  BODY("\0\0\0\0\x02hi"),
	  OK_ECHO,
	  "call Echo 2 hi;" },
	{ "identity is no encoding",
	  { ECHO_HEAD, { "grpc-encoding", "identity" } },
	  BODY("\0\0\0\0\x02hi"),
	  OK_ECHO,
	  "call Echo 2 hi;" },
	{ "gzip",
	  { ECHO_HEAD, { "grpc-encoding", "gzip" } },
	  BODY("\1\0\0\0\x02hi"),
	  ERROR("12", "compressed messages are not supported: use grpc-encoding identity"),
	  "" },
	{ "compressed flag without encoding",
	  { ECHO_HEAD },
	  BODY("\1\0\0\0\x02hi"),
	  ERROR("13", "message is marked compressed, but no grpc-encoding was agreed"),
	  "" },
	{ "strange flag",
	  { ECHO_HEAD },
	  BODY("\3\0\0\0\x02hi"),
	  ERROR("13", "message starts with flag 3, neither 0 nor 1"),
	  "" },
	{ "unknown method",
	  { HEAD("POST", "/t.T/\xC3\xA4%", "x", "application/grpc") },
	  BODY("\0\0\0\0\x02hi"),
	  ERROR("12", "unknown method /t.T/%C3%A4%25"),
	  "" },
	{ "no path",
	  { { ":method", "POST" }, { "content-type", "application/grpc" } },
	  BODY(""),
	  ERROR("12", "unknown method "),
	  "" },
	{ "not gRPC", { HEAD("POST", "/t.T/Echo", "x", "application/json") }, BODY("{}"), "h :status: 415;end;", "" },
	{ "gRPC-Web",
	  { HEAD("POST", "/t.T/Echo", "x", "application/grpc-web") },
	  BODY("{}"),
	  "h :status: 415;end;",
	  "" },
	{ "no content-type", { { ":method", "POST" }, { ":path", "/t.T/Echo" } }, BODY(""), "h :status: 415;end;", "" },
	{ "GET", { HEAD("GET", "/t.T/Echo", "x", "application/grpc") }, NULL, 0, "h :status: 405;end;", "" },
	{ "no message", { ECHO_HEAD }, NULL, 0, ERROR("13", "no message in the request"), "" },
	{ "half a prefix", { ECHO_HEAD }, BODY("\0\0\0"), ERROR("13", "stream ended within a message"), "" },
	{ "half a message", { ECHO_HEAD }, BODY("\0\0\0\0\x05hi"), ERROR("13", "stream ended within a message"), "" },
	{ "two messages",
	  { ECHO_HEAD },
	  BODY("\0\0\0\0\x02hi\0\0\0\0\x02hi"),
	  ERROR("13", "more than one message in the request"),
	  "" },
	{ "a byte too many",
	  { ECHO_HEAD },
	  BODY("\0\0\0\0\x02hi!"),
	  ERROR("13", "more than one message in the request"),
	  "" },
	{ "16 MiB and one",
	  { ECHO_HEAD },
	  BODY("\0\1\0\0\1"),
	  ERROR("8", "message of 16777217 bytes is above the limit of 16777216"),
	  "" },
	{ "bad timeout",
	  { ECHO_HEAD, { "grpc-timeout", "soon" } },
	  BODY("\0\0\0\0\x02hi"),
	  ERROR("13", "malformed grpc-timeout"),
	  "" },
};

static void start(struct pair *users, struct probe *p)
{
	struct hm_err e;

	if (pair_init(users, 65536, &e) < 0)
		fail_msg("%s", e.msg);
	probe_init(p, false);
	assert_true(probe_run(p, users->server, 1000));
}

static void stop(struct pair *users, struct probe *p)
{
	probe_fini(p);
	pair_fini(users);
}

/* All on one connection, twice over: a bad call harms no other. */
static void test_requests(void **state)
{
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	for (size_t i = 0; i < 2 * HM_COUNT(requests); i++) {
		const struct request *r = &requests[i % HM_COUNT(requests)];

		str_clear(&users.log);
		str_clear(&p.log);
		p.body = r->body;
		p.body_n = r->body_n;
		probe_request(&p, r->headers);
		assert_true(probe_run(&p, users.server, 1000));
		/* "rst 0" says that the answer was ready before the request's end. */
		if (strncmp(str_text(&p.log), r->heard, strlen(r->heard)) != 0 ||
		    (p.log.n != strlen(r->heard) && strcmp(str_text(&p.log) + strlen(r->heard), "rst 0;") != 0) ||
		    strcmp(str_text(&users.log), r->users) != 0)
			fail_msg("%s: heard \"%s\", users saw \"%s\"", r->name, str_text(&p.log), str_text(&users.log));
		assert_int_equal(rpc_conn_open_streams(users.server), 0);
	}
	stop(&users, &p);
}

/* Answered before the request's end: the rest is not wanted. */
static void test_early_answer_resets(void **state)
{
	static const struct probe_header headers[] = { HEAD("POST", "/no", "x", "application/grpc"), { NULL, NULL } };
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	p.body = "";
	p.keep_open = true;
	probe_request(&p, headers);
	assert_true(probe_run(&p, users.server, 1000));
	assert_non_null(strstr(str_text(&p.log), "h grpc-status: 12;"));
	assert_non_null(strstr(str_text(&p.log), "end;rst 0;"));
	assert_int_equal(rpc_conn_open_streams(users.server), 0);
	stop(&users, &p);
}

static void test_large_headers(void **state)
{
	static const struct probe_header head[] = { ECHO_HEAD };
	struct probe_header headers[400] = { { NULL, NULL } };
	size_t n = HM_COUNT(head);
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	memcpy(headers, head, sizeof head);
	while (n < HM_COUNT(headers) - 1) /* 395 * (32 + 1 + 20) = 20935 bytes */
		headers[n++] = (struct probe_header) { "x", "aaaaaaaaaabbbbbbbbbb" };
	probe_request(&p, headers);
	assert_true(probe_run(&p, users.server, 1000));
	assert_string_equal(str_text(&p.log), ERROR("8", "headers of the call are above 16384 bytes"));
	stop(&users, &p);
}

static void test_trailers_of_a_request_change_nothing(void **state)
{
	static const struct probe_header headers[] = { ECHO_HEAD, { NULL, NULL } };
	const nghttp2_nv path = { (uint8_t *)(uintptr_t) ":path", (uint8_t *)(uintptr_t) "/t.T/Fail", 5, 9, 0 };
	struct pair users;
	struct probe p;
	int32_t id;

	(void)state;
	start(&users, &p);
	p.body = "\0\0\0\0\x02hi";
	p.body_n = 7;
	p.keep_open = true;
	id = probe_request(&p, headers);
	assert_true(probe_run(&p, users.server, 1000));
	assert_int_equal(nghttp2_submit_trailer(p.session, id, &path, 1), 0);
	assert_true(probe_run(&p, users.server, 1000));
	assert_string_equal(str_text(&users.log), "call Echo 2 hi;");
	stop(&users, &p);
}

/* The same before the message: the method was looked up already and must not be lost (found by fuzzing). */
static void test_second_headers_change_nothing(void **state)
{
	static const struct probe_header headers[] = { ECHO_HEAD, { NULL, NULL } };
	const nghttp2_nv path = { (uint8_t *)(uintptr_t) ":path", (uint8_t *)(uintptr_t) "/none", 5, 5, 0 };
	struct pair users;
	struct probe p;
	int32_t id;

	(void)state;
	start(&users, &p);
	p.body = "\0\0\0\0\x02hi";
	p.keep_open = true;
	id = probe_request(&p, headers);
	assert_true(probe_run(&p, users.server, 1000));
	assert_int_equal(nghttp2_submit_headers(p.session, NGHTTP2_FLAG_NONE, id, NULL, &path, 1, NULL), 0);
	assert_true(probe_run(&p, users.server, 1000));
	p.body_n = 7;
	p.keep_open = false;
	assert_int_equal(nghttp2_session_resume_data(p.session, id), 0);
	assert_true(probe_run(&p, users.server, 1000));
	assert_string_equal(str_text(&users.log), "call Echo 2 hi;");
	stop(&users, &p);
}

/* Unfinished requests of one connection are bounded together. */
static void test_bound_of_unfinished_requests(void **state)
{
	static const struct probe_header headers[] = { ECHO_HEAD, { NULL, NULL } };
	static const uint8_t prefix[] = { 0, 1, 0, 0, 0 }; /* 16 MiB */
	char *body = calloc(1, RPC_MAX_RECEIVE_BYTES);
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	memcpy(body, prefix, sizeof prefix);
	p.body = body;
	p.body_n = RPC_MAX_RECEIVE_BYTES; /* five bytes short of the message's end */
	p.keep_open = true;
	for (size_t i = 0; i < RPC_MAX_BUFFERED_BYTES / RPC_MAX_RECEIVE_BYTES; i++) {
		probe_request(&p, headers);
		assert_true(probe_run(&p, users.server, 1000));
		assert_string_equal(str_text(&p.log), "");
	}
	probe_request(&p, headers);
	assert_true(probe_run(&p, users.server, 1000));
	assert_non_null(strstr(str_text(&p.log), "h grpc-status: 8;h grpc-message: too many bytes"));
	free(body);
	stop(&users, &p);
}

static void test_pings_are_answered_and_not_policed(void **state)
{
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	for (int i = 0; i < 5000; i++) {
		str_clear(&p.log);
		nghttp2_submit_ping(p.session, NGHTTP2_FLAG_NONE, NULL);
		assert_true(probe_run(&p, users.server, 1000));
		assert_string_equal(str_text(&p.log), "pong;");
	}
	stop(&users, &p);
}

static bool open_and_reset(struct probe *p, struct pair *users, uint64_t now_ms)
{
	static const struct probe_header headers[] = { HEAD("POST", "/t.T/Hold", "x", "application/grpc"),
						       { NULL, NULL } };
	int32_t id;

	p->body = "\0\0\0\0\0";
	p->body_n = 5;
	id = probe_request(p, headers);
	if (!probe_run(p, users->server, now_ms))
		return false;
	nghttp2_submit_rst_stream(p->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	return probe_run(p, users->server, now_ms) && strstr(str_text(&p->log), "goaway") == NULL;
}

static void test_resets_are_counted(void **state)
{
	struct pair users;
	struct probe p;
	size_t n = 0;

	(void)state;
	start(&users, &p);
	/* 150 a second for a minute is fine */
	for (uint64_t i = 0; i < 60 * 150; i++)
		assert_true(open_and_reset(&p, &users, 1000 + i * 1000 / 150));
	/* a burst is not */
	while (n < 5000 && open_and_reset(&p, &users, 61000))
		n++;
	assert_in_range(n, 900, RPC_MAX_RESET_BURST);
	assert_non_null(strstr(str_text(&p.log), "goaway 11;")); /* ENHANCE_YOUR_CALM */
	assert_true(rpc_conn_is_over(users.server));
	stop(&users, &p);
}

static void test_too_many_streams(void **state)
{
	static const struct probe_header headers[] = { HEAD("POST", "/t.T/Hold", "x", "application/grpc"),
						       { NULL, NULL } };
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	p.body = "\0\0\0\0\0";
	p.body_n = 5;
	for (int i = 0; i < RPC_MAX_STREAMS + 20; i++) {
		probe_request(&p, headers);
		assert_true(probe_run(&p, users.server, 1000));
	}
	assert_int_equal(rpc_conn_open_streams(users.server), 100); /* as promised in SETTINGS and docs/rpc.md */
	stop(&users, &p);
}

static void test_garbage(void **state)
{
	static const char *const inputs[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(inputs); i++) {
		struct pair users;
		struct probe p;
		int r;

		if (pair_init(&users, 1, NULL) < 0)
			fail_msg("out of memory");
		probe_init(&p, false);
		r = rpc_conn_feed(users.server, (const uint8_t *)inputs[i], strlen(inputs[i]), 1000);
		drain(users.server);
		assert_true(r < 0 || rpc_conn_is_over(users.server));
		assert_true(r == 0 || r == -HM_EPROTO);
		assert_true(r == 0 || rpc_conn_feed(users.server, (const uint8_t *)"x", 1, 1000) < 0);
		stop(&users, &p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_early_answer_resets),
		cmocka_unit_test(test_large_headers),
		cmocka_unit_test(test_trailers_of_a_request_change_nothing),
		cmocka_unit_test(test_second_headers_change_nothing),
		cmocka_unit_test(test_bound_of_unfinished_requests),
		cmocka_unit_test(test_pings_are_answered_and_not_policed),
		cmocka_unit_test(test_resets_are_counted),
		cmocka_unit_test(test_too_many_streams),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
