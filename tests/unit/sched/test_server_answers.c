/* Answers that come later or to nobody, routes, and the end. */
#include "server_world.h"

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
		cmocka_unit_test(test_answer_later),
		cmocka_unit_test(test_peer_without_a_word),
		cmocka_unit_test(test_peer_gone_meanwhile),
		cmocka_unit_test(test_freed_with_requests),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
