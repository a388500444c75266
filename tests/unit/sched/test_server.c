/* What evhttp does not bound by itself: time, connections, memory. */
#include "server_world.h"

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
