/* The server on real sockets, its deadlines shortened: what evhttp does not bound by itself. Client and server share
 * the test's loop. */
#include "sched/serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "harness/unit.h"

enum { LONG_MS = 30000, SHORT_MS = 80, BIG = 8 << 20, PATIENCE_MS = 20000 };

static struct loop *loop;
static struct secrets *secrets;
static struct server *server;
static struct server_request *kept;
static size_t last_body;

static void get_ok(void *arg, struct server_request *r)
{
	(void)arg;
	server_answer_text(r, 200, "ok\n");
}

static void get_big(void *arg, struct server_request *r)
{
	struct str body = { 0 };

	(void)arg;
	for (size_t i = 0; i < BIG / 64; i++)
		str_add(&body, "0123456789012345678901234567890123456789012345678901234567890123");
	server_answer(r, 200, SERVER_TEXT, &body);
}

static void post_count(void *arg, struct server_request *r)
{
	char text[32];

	(void)arg;
	server_body(r, &last_body);
	snprintf(text, sizeof text, "%zu bytes\n", last_body);
	server_answer_text(r, 200, text);
}

static void post_keep(void *arg, struct server_request *r)
{
	(void)arg;
	kept = r;
}

static const struct server_route routes[] = {
	{ "GET", "/ok", SERVER_OPEN, 0, get_ok, NULL },
	{ "GET", "/big", SERVER_OPEN, 0, get_big, NULL },
	{ "POST", "/count", SERVER_GUARDED, 0, post_count, NULL },
	{ "POST", "/keep", SERVER_OPEN, 10, post_keep, NULL },
};

static const struct conns_limits roomy = { LONG_MS, LONG_MS, LONG_MS, LONG_MS, 100, 64 << 20 };

static void start(const struct conns_limits *limits)
{
	const struct secrets_files files = { NULL };
	struct server_config config = {
		.address = "127.0.0.1:0", .routes = routes, .route_count = HM_COUNT(routes), .limits = *limits
	};
	struct hm_err e;

	kept = NULL;
	assert_int_equal(loop_new(&loop, &e), 0);
	assert_int_equal(secrets_new(loop, &files, &secrets, &e), 0);
	config.secrets = secrets;
	assert_int_equal(server_new(loop, &config, &server, &e), 0);
}

static void finish(void)
{
	server_free(HM_STEAL(server));
	secrets_free(HM_STEAL(secrets));
	loop_free(HM_STEAL(loop));
}

static void turn(void)
{
	struct hm_err e;

	assert_int_equal(loop_run_once(loop, 5, &e), 0);
}

#define WAIT_FOR(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t since_ = loop_now_ms(loop);                                                                   \
		while (!(condition)) {                                                                                 \
			if (loop_now_ms(loop) - since_ > PATIENCE_MS)                                                  \
				fail_msg("never came: %s", #condition);                                                \
			turn();                                                                                        \
		}                                                                                                      \
	} while (0)

static int client(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server_port(server)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What came so far; *ended: the server closed. */
static size_t hear(int fd, char *out, size_t cap, bool *ended)
{
	size_t n = 0;

	*ended = false;
	while (n < cap) {
		ssize_t got = recv(fd, out + n, cap - n, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			*ended = true;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static bool is_closed(int fd)
{
	char buf[4096];
	bool ended;

	hear(fd, buf, sizeof buf, &ended);
	return ended;
}

/* An answer with this status and, at its end, this body. */
static void expect(int fd, const char *status, const char *tail)
{
	char buf[8192] = "";
	size_t n = 0;

	for (uint64_t since = loop_now_ms(loop);;) {
		bool ended;

		n += hear(fd, buf + n, sizeof buf - 1 - n, &ended);
		buf[n] = '\0';
		if (strstr(buf, "\r\n\r\n") != NULL && n >= strlen(tail) && strcmp(buf + n - strlen(tail), tail) == 0)
			break;
		if (ended || loop_now_ms(loop) - since > PATIENCE_MS)
			fail_msg("no %s with \"%s\": \"%s\"", status, tail, buf);
		turn();
	}
	if (strncmp(buf, "HTTP/1.1 ", 9) != 0 || strncmp(buf + 9, status, strlen(status)) != 0)
		fail_msg("not %s: \"%s\"", status, buf);
}

static void ask_ok(void)
{
	int fd = client();

	say(fd, "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
	expect(fd, "200", "ok\n");
	close(fd);
}

static uint64_t dropped(enum conn_drop why)
{
	return server_conns_stats(server)->dropped[why];
}

#define OPEN (server_conns_stats(server)->open)

/* ---- deadlines */

static void test_slow_header(void **state)
{
	struct conns_limits limits = roomy;
	int silent, slow;

	(void)state;
	limits.header_ms = SHORT_MS;
	start(&limits);
	silent = client();
	slow = client();
	say(slow, "GET /ok HTTP/1.1\r\n");
	WAIT_FOR(OPEN == 2);
	/* Busy all the time, but never too long: each byte would put off a timeout of the connection. */
	for (uint64_t since = loop_now_ms(loop), last = 0; dropped(DROP_HEADER) < 2; turn()) {
		uint64_t now = loop_now_ms(loop);

		assert_true(now - since < PATIENCE_MS);
		if (now > last)
			(void)!send(slow, "a", 1, MSG_NOSIGNAL);
		last = now;
	}
	WAIT_FOR(OPEN == 0);
	assert_true(is_closed(silent) && is_closed(slow));
	ask_ok();
	close(silent);
	close(slow);
	finish();
}

/* What came behind the first request begins the second one's header. */
static void test_slow_second_header(void **state)
{
	struct conns_limits limits = roomy;
	int fd;

	(void)state;
	limits.header_ms = SHORT_MS;
	start(&limits);
	fd = client();
	say(fd, "GET /ok HTTP/1.1\r\n\r\nGET /ok");
	expect(fd, "200", "ok\n");
	WAIT_FOR(dropped(DROP_HEADER) == 1 && OPEN == 0);
	close(fd);
	finish();
}

/* The header's deadline ends with its blank line, wherever reads cut it. */
static void test_body_has_its_own_deadline(void **state)
{
	static const char head[] = "POST /count HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
	struct conns_limits limits = roomy;
	uint64_t since;
	int fd;

	(void)state;
	limits.header_ms = 1000; /* for all its bytes, on a slow machine, too */
	start(&limits);
	fd = client();
	for (const char *p = head; *p != '\0'; p++) {
		assert_int_equal(send(fd, p, 1, MSG_NOSIGNAL), 1);
		turn();
	}
	for (since = loop_now_ms(loop); loop_now_ms(loop) - since < 1300;)
		turn();
	say(fd, "body");
	expect(fd, "200", "4 bytes\n");
	close(fd);
	finish();

	limits = roomy;
	limits.body_ms = SHORT_MS;
	start(&limits);
	fd = client();
	say(fd, "POST /count HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (since = loop_now_ms(loop); dropped(DROP_BODY) == 0; turn()) {
		assert_true(loop_now_ms(loop) - since < PATIENCE_MS);
		(void)!send(fd, "1\r\nx\r\n", 6, MSG_NOSIGNAL);
	}
	WAIT_FOR(OPEN == 0);
	close(fd);
	finish();
}

static void test_idle(void **state)
{
	struct conns_limits limits = roomy;
	int fd;

	(void)state;
	limits.idle_ms = SHORT_MS;
	start(&limits);
	fd = client();
	say(fd, "GET /ok HTTP/1.1\r\n\r\n");
	expect(fd, "200", "ok\n");
	WAIT_FOR(dropped(DROP_IDLE) == 1 && OPEN == 0);
	assert_true(is_closed(fd));
	close(fd);
	finish();
}

static void test_answer_not_taken(void **state)
{
	struct conns_limits limits = roomy;
	int fd;

	(void)state;
	limits.write_ms = SHORT_MS;
	start(&limits);
	fd = client();
	say(fd, "GET /big HTTP/1.1\r\n\r\n");
	WAIT_FOR(server_conns_stats(server)->held_bytes >= BIG);
	WAIT_FOR(dropped(DROP_WRITE) == 1 && OPEN == 0);
	assert_int_equal(server_conns_stats(server)->held_bytes, 0);
	close(fd);
	finish();
}

/* ---- bounds */

static void test_too_many(void **state)
{
	struct conns_limits limits = roomy;
	int idle[3], silent[3], next;

	(void)state;
	limits.connections = 6;
	start(&limits);
	for (size_t i = 0; i < HM_COUNT(silent); i++)
		silent[i] = client();
	for (size_t i = 0; i < HM_COUNT(idle); i++) {
		idle[i] = client();
		say(idle[i], "GET /ok HTTP/1.1\r\n\r\n");
		expect(idle[i], "200", "ok\n");
	}
	assert_int_equal(OPEN, 6);
	/* The oldest of those that wait goes, not the older ones that have not asked yet. */
	next = client();
	say(next, "GET /ok HTTP/1.1\r\n\r\n");
	expect(next, "200", "ok\n");
	WAIT_FOR(OPEN == 6);
	assert_int_equal(dropped(DROP_ROOM), 1);
	assert_true(is_closed(idle[0]));
	assert_false(is_closed(idle[1]) || is_closed(silent[0]));
	close(next);
	for (size_t i = 0; i < 3; i++) {
		close(idle[i]);
		close(silent[i]);
	}
	finish();
}

static void push(int fd, size_t bytes)
{
	static char part[65536];

	memset(part, 'x', sizeof part);
	while (bytes > 0) {
		ssize_t n = send(fd, part, HM_MIN(bytes, sizeof part), MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_true(n > 0 || errno == EAGAIN);
		bytes -= n > 0 ? (size_t)n : 0;
		turn();
	}
}

/* The largest goes, not who came last; small ones are served meanwhile. */
static void test_memory(void **state)
{
	struct conns_limits limits = roomy;
	int large, small;

	(void)state;
	limits.held_bytes = 1000000;
	start(&limits);
	large = client();
	small = client();
	say(large, "POST /count HTTP/1.1\r\nContent-Length: 900000\r\n\r\n");
	push(large, 700000);
	WAIT_FOR(server_conns_stats(server)->held_bytes >= 700000);
	ask_ok();
	say(small, "POST /count HTTP/1.1\r\nContent-Length: 400000\r\n\r\n");
	push(small, 400000);
	expect(small, "200", "400000 bytes\n");
	assert_int_equal(dropped(DROP_MEMORY), 1);
	assert_true(is_closed(large));
	close(large);
	close(small);
	WAIT_FOR(OPEN == 0);
	assert_int_equal(server_conns_stats(server)->held_bytes, 0);
	finish();
}

static void test_large_header_and_body(void **state)
{
	char text[128];
	int fd;

	(void)state;
	start(&roomy);
	fd = client();
	snprintf(text, sizeof text, "POST /count HTTP/1.1\r\nContent-Length: %d\r\n\r\n", SERVER_MAX_BODY_BYTES + 1);
	say(fd, text);
	expect(fd, "413", "\n");
	close(fd);
	fd = client();
	say(fd, "POST /keep HTTP/1.1\r\nContent-Length: 11\r\n\r\n12345678901");
	expect(fd, "413", "the body is too large\n");
	assert_null(kept);
	close(fd);
	fd = client();
	say(fd, "GET /ok HTTP/1.1\r\n");
	for (int i = 0; i < SERVER_MAX_HEAD_BYTES / 10; i++)
		(void)!send(fd, "A: 4567890\r\n", 12, MSG_NOSIGNAL);
	WAIT_FOR(is_closed(fd));
	close(fd);
	WAIT_FOR(OPEN == 0);
	finish();
}

/* ---- answers that come later */

static void test_answer_later(void **state)
{
	int fd;

	(void)state;
	start(&roomy);
	fd = client();
	/* The next request is on its way already; it waits its turn. */
	say(fd, "POST /keep HTTP/1.1\r\nContent-Length: 1\r\n\r\nxGET /ok HTTP/1.1\r\n\r\n");
	WAIT_FOR(kept != NULL);
	ask_ok();
	server_answer_text(HM_STEAL(kept), 200, "late\n");
	expect(fd, "200", "ok\n");
	close(fd);
	WAIT_FOR(OPEN == 0);
	finish();
}

/* The server's end of the client's connection, which is in this process, too. */
static int accepted(int client_fd)
{
	struct sockaddr_in mine, peer;
	socklen_t n = sizeof mine;

	assert_int_equal(getsockname(client_fd, (struct sockaddr *)&mine, &n), 0);
	for (int fd = 0; fd < 1024; fd++) {
		n = sizeof peer;
		if (getpeername(fd, (struct sockaddr *)&peer, &n) == 0 && peer.sin_family == AF_INET &&
		    peer.sin_port == mine.sin_port)
			return fd;
	}
	fail_msg("nobody is connected to the client");
	return -1;
}

/* Half-open: the peer vanished and the connection stands. docs/scheduler.md has the figures. */
static void test_peer_without_a_word(void **state)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 }, { IPPROTO_TCP, TCP_KEEPIDLE, 20 }, { IPPROTO_TCP, TCP_KEEPINTVL, 10 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 }, { IPPROTO_TCP, TCP_NODELAY, 1 },
	};
	int fd, theirs;

	(void)state;
	start(&roomy);
	fd = client();
	WAIT_FOR(OPEN == 1);
	turn();
	theirs = accepted(fd);
	for (size_t i = 0; i < HM_COUNT(options); i++) {
		int value = -1;
		socklen_t n = sizeof value;

		assert_int_equal(getsockopt(theirs, options[i].level, options[i].name, &value, &n), 0);
		assert_int_equal(value, options[i].value);
	}
	close(fd);
	finish();
}

static void test_peer_gone_meanwhile(void **state)
{
	int fd;

	(void)state;
	start(&roomy);
	fd = client();
	say(fd, "POST /keep HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
	WAIT_FOR(kept != NULL);
	close(fd);
	for (int i = 0; i < 5; i++)
		turn();
	server_answer_text(HM_STEAL(kept), 200, "late\n");
	WAIT_FOR(OPEN == 0);
	ask_ok();
	finish();
}

static void test_freed_with_requests(void **state)
{
	int kept_fd, half, fresh;

	(void)state;
	start(&roomy);
	kept_fd = client();
	half = client();
	say(kept_fd, "POST /keep HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
	say(half, "POST /keep HTTP/1.1\r\nContent-Length: 10\r\n\r\nx");
	WAIT_FOR(kept != NULL && OPEN == 2);
	fresh = client(); /* not even accepted */
	finish();
	assert_true(is_closed(kept_fd) && is_closed(half) && is_closed(fresh));
	close(kept_fd);
	close(half);
	close(fresh);
}

/* ---- the end */

static void note_stopped(void *arg)
{
	*(bool *)arg = true;
}

static void test_stop(void **state)
{
	int waiting, silent, in_hand, half;
	bool stopped = false;

	(void)state;
	start(&roomy);
	waiting = client();
	say(waiting, "GET /ok HTTP/1.1\r\n\r\n");
	expect(waiting, "200", "ok\n");
	silent = client();
	in_hand = client();
	half = client();
	say(in_hand, "POST /keep HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
	say(half, "POST /count HTTP/1.1\r\nContent-Length: 4\r\n\r\nxx");
	WAIT_FOR(kept != NULL && OPEN == 4 && server_conns_stats(server)->held_bytes > 0);
	server_stop(server, note_stopped, &stopped);
	WAIT_FOR(OPEN == 2);
	assert_true(is_closed(waiting) && is_closed(silent));
	assert_false(stopped);
	say(half, "xx");
	expect(half, "200", "4 bytes\n");
	server_answer_text(HM_STEAL(kept), 200, "done\n");
	expect(in_hand, "200", "done\n");
	WAIT_FOR(stopped);
	assert_int_equal(OPEN, 0);
	close(waiting);
	close(silent);
	close(in_hand);
	close(half);
	finish();
}

/* ---- paths and methods, as HAMi's server answers them */

static void test_routes(void **state)
{
	static const struct {
		const char *request, *status, *tail;
	} cases[] = {
		{ "GET /ok?x=y HTTP/1.1\r\n\r\n", "200", "ok\n" },
		{ "POST /ok HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405", "Method Not Allowed\n" },
		{ "PUT /count HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405", "Method Not Allowed\n" },
		{ "GET /nothing HTTP/1.1\r\n\r\n", "404", "404 page not found\n" },
		{ "GET / HTTP/1.1\r\n\r\n", "404", "404 page not found\n" },
		{ "GET /ok/ HTTP/1.1\r\n\r\n", "301", "\r\n\r\n" },
		{ "GET /count/ HTTP/1.1\r\n\r\n", "404", "404 page not found\n" },
		{ "POST /count/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "308", "\r\n\r\n" },
		{ "POST /count HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "200", "0 bytes\n" },
		{ "HEAD /ok HTTP/1.1\r\n\r\n", "405", "\r\n\r\n" },
		{ "OPTIONS /ok HTTP/1.1\r\n\r\n", "200", "\r\n\r\n" },
	};
	int fd;

	(void)state;
	start(&roomy);
	fd = client();
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		say(fd, cases[i].request);
		expect(fd, cases[i].status, cases[i].tail);
	}
	assert_int_equal(server_conns_stats(server)->accepted, 1);
	assert_int_equal(server_stats(server)->unknown, 9);
	assert_int_equal(server_stats(server)->routes[0].by_class[2], 1);
	close(fd);
	/* No request at all. */
	fd = client();
	say(fd, "hello\r\n\r\n");
	WAIT_FOR(is_closed(fd));
	close(fd);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_header),
		cmocka_unit_test(test_body_has_its_own_deadline),
		cmocka_unit_test(test_slow_second_header),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_answer_not_taken),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_large_header_and_body),
		cmocka_unit_test(test_answer_later),
		cmocka_unit_test(test_peer_without_a_word),
		cmocka_unit_test(test_peer_gone_meanwhile),
		cmocka_unit_test(test_freed_with_requests),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
