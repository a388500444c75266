/* The client's engine against a server that answers what it likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/rpc/pair.h"
#include "unit/rpc/probe.h"

#define END                                                                                                            \
	{                                                                                                              \
		NULL, NULL                                                                                             \
	}
#define HEAD                                                                                                           \
	{ ":status", "200" },                                                                                          \
	{                                                                                                              \
		"content-type", "application/grpc"                                                                     \
	}
#define BODY(text) text, sizeof text - 1

static const struct test_answer {
	const char *name;
	struct probe_header head[6], trailers[4];
	bool has_trailers;
	const char *body;
	size_t body_n;
	const char *log;
} answers[] = {
	{ "plain", { HEAD }, { { "grpc-status", "0" } }, true, BODY("\0\0\0\0\x02hi"), "message 2 hi;done OK ;" },
	{ "stream",
	  { HEAD },
	  { { "grpc-status", "0" } },
	  true,
	  BODY("\0\0\0\0\x02hi\0\0\0\0\0\0\0\0\0\x02ho"),
	  "message 2 hi;message 0 ;message 2 ho;done OK ;" },
	{ "error behind a message",
	  { HEAD },
	  { { "grpc-status", "9" }, { "grpc-message", "k%C3%B6nnte%20%25" } },
	  true,
	  BODY("\0\0\0\0\x02hi"),
	  "message 2 hi;done FAILED_PRECONDITION k\xC3\xB6nnte %;" },
	{ "trailers only",
	  { HEAD, { "grpc-status", "5" }, { "grpc-message", "no" } },
	  { END },
	  false,
	  NULL,
	  0,
	  "done NOT_FOUND no;" },
	{ "OK without a message", { HEAD, { "grpc-status", "0" } }, { END }, false, NULL, 0, "done OK ;" },
	{ "status out of range", { HEAD, { "grpc-status", "99" } }, { END }, false, NULL, 0, "done UNKNOWN ;" },
	{ "status no number", { HEAD, { "grpc-status", "x" } }, { END }, false, NULL, 0, "done UNKNOWN ;" },
	{ "no status",
	  { HEAD },
	  { END },
	  false,
	  BODY("\0\0\0\0\x02hi"),
	  "message 2 hi;done UNKNOWN the answer has no grpc-status;" },
	{ "404", { { ":status", "404" } }, { END }, false, BODY("<html>"), "done UNIMPLEMENTED HTTP status 404;" },
	{ "503", { { ":status", "503" } }, { END }, false, NULL, 0, "done UNAVAILABLE HTTP status 503;" },
	{ "418", { { ":status", "418" } }, { END }, false, NULL, 0, "done UNKNOWN HTTP status 418;" },
	{ "a page",
	  { { ":status", "200" }, { "content-type", "text/html" } },
	  { END },
	  false,
	  BODY("<html>"),
	  "done UNKNOWN the answer's content-type is not application/grpc;" },
	{ "cut message",
	  { HEAD },
	  { { "grpc-status", "0" } },
	  true,
	  BODY("\0\0\0\0\x05hi"),
	  "done INTERNAL the answer ends within a message;" },
	{ "compressed message",
	  { HEAD },
	  { { "grpc-status", "0" } },
	  true,
	  BODY("\1\0\0\0\x02hi"),
	  "done INTERNAL message is marked compressed, but no grpc-encoding was agreed;" },
	{ "16 MiB and one",
	  { HEAD },
	  { { "grpc-status", "0" } },
	  true,
	  BODY("\0\1\0\0\1"),
	  "done RESOURCE_EXHAUSTED message of 16777217 bytes is above the limit of 16777216;" },
};

static void start(struct pair *users, struct probe *p)
{
	struct hm_err e;

	if (pair_init(users, 65536, &e) < 0)
		fail_msg("%s", e.msg);
	probe_init(p, true);
}

static void stop(struct pair *users, struct probe *p)
{
	probe_fini(p);
	pair_fini(users);
}

static void call(struct pair *users, const char *text, uint64_t timeout_ms)
{
	struct hm_err e;

	if (pair_call(users, "/t.T/X", text, timeout_ms, &e) < 0)
		fail_msg("%s", e.msg);
}

static void test_answers(void **state)
{
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	for (size_t i = 0; i < 2 * HM_COUNT(answers); i++) {
		const struct test_answer *t = &answers[i % HM_COUNT(answers)];
		struct probe_answer a = { t->head, t->has_trailers ? t->trailers : NULL, t->body, t->body_n };

		p.answer = &a;
		str_clear(&users.log);
		call(&users, "x", 0);
		assert_true(probe_run(&p, users.client, 1000));
		if (strcmp(str_text(&users.log), t->log) != 0)
			fail_msg("%s: users saw \"%s\"", t->name, str_text(&users.log));
		assert_int_equal(rpc_conn_open_streams(users.client), 0);
	}
	stop(&users, &p);
}

static void test_what_is_sent(void **state)
{
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	call(&users, "hi", 250);
	assert_true(probe_run(&p, users.client, 1000));
	assert_string_equal(str_text(&p.log),
			    "h :method: POST;h :scheme: http;h :path: /t.T/X;h :authority: localhost;"
			    "h content-type: application/grpc;h te: trailers;h grpc-accept-encoding: identity;"
			    "h grpc-timeout: 250m;data 7;end;");
	str_clear(&p.log);
	call(&users, "hi", 0);
	assert_true(probe_run(&p, users.client, 1000));
	assert_null(strstr(str_text(&p.log), "grpc-timeout"));
	stop(&users, &p);
}

static void test_resets(void **state)
{
	static const struct {
		uint32_t error;
		const char *log;
	} cases[] = {
		{ NGHTTP2_NO_ERROR, "done INTERNAL stream closed by HTTP/2 error NO_ERROR;" },
		{ NGHTTP2_REFUSED_STREAM, "done UNAVAILABLE stream closed by HTTP/2 error REFUSED_STREAM;" },
		{ NGHTTP2_CANCEL, "done CANCELLED stream closed by HTTP/2 error CANCEL;" },
		{ NGHTTP2_ENHANCE_YOUR_CALM,
		  "done RESOURCE_EXHAUSTED stream closed by HTTP/2 error ENHANCE_YOUR_CALM;" },
		{ NGHTTP2_INTERNAL_ERROR, "done INTERNAL stream closed by HTTP/2 error INTERNAL_ERROR;" },
	};
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		str_clear(&users.log);
		call(&users, "x", 0);
		assert_true(probe_run(&p, users.client, 1000));
		nghttp2_submit_rst_stream(p.session, NGHTTP2_FLAG_NONE, (int32_t)(2 * i + 1), cases[i].error);
		assert_true(probe_run(&p, users.client, 1000));
		assert_string_equal(str_text(&users.log), cases[i].log);
	}
	stop(&users, &p);
}

static void test_large_headers(void **state)
{
	static const struct probe_header head[] = { HEAD };
	struct probe_header headers[400] = { { NULL, NULL } };
	struct probe_answer a = { .head = headers };
	size_t n = HM_COUNT(head);
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	memcpy(headers, head, sizeof head);
	while (n < HM_COUNT(headers) - 1)
		headers[n++] = (struct probe_header) { "x", "aaaaaaaaaabbbbbbbbbb" };
	p.answer = &a;
	call(&users, "x", 0);
	assert_true(probe_run(&p, users.client, 1000));
	assert_string_equal(str_text(&users.log), "done RESOURCE_EXHAUSTED headers of the answer are too large;");
	stop(&users, &p);
}

/* Answered while we still send: the rest is not sent. */
static void test_early_answer(void **state)
{
	static const struct probe_header head[] = { HEAD, { "grpc-status", "8" }, END };
	static const struct probe_answer a = { .head = head, .early = true };
	static char text[1000001];
	struct pair users;
	struct probe p;

	(void)state;
	start(&users, &p);
	memset(text, 'x', sizeof text - 1);
	p.answer = &a;
	call(&users, text, 0);
	assert_true(probe_run(&p, users.client, 1000));
	assert_string_equal(str_text(&users.log), "done RESOURCE_EXHAUSTED ;");
	assert_non_null(strstr(str_text(&p.log), "rst 8;"));
	assert_int_equal(rpc_conn_open_streams(users.client), 0);
	stop(&users, &p);
}

/* The server ends the connection and never saw the second call: that one may be tried again. */
static void test_goaway(void **state)
{
	struct pair users;
	struct hm_err e;
	struct probe p;

	(void)state;
	start(&users, &p);
	call(&users, "x", 0);
	assert_true(probe_run(&p, users.client, 1000));
	call(&users, "y", 0);
	nghttp2_submit_goaway(p.session, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR, NULL, 0);
	assert_true(probe_run(&p, users.client, 1000));
	assert_string_equal(str_text(&users.log), "done UNAVAILABLE stream closed by HTTP/2 error REFUSED_STREAM;");
	assert_int_equal(pair_call(&users, "/t.T/X", "x", 0, &e), -HM_EAGAIN);
	assert_int_equal(rpc_conn_open_streams(users.client), 1);
	stop(&users, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),      cmocka_unit_test(test_what_is_sent),
		cmocka_unit_test(test_resets),       cmocka_unit_test(test_large_headers),
		cmocka_unit_test(test_early_answer), cmocka_unit_test(test_goaway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
