/* The server on real sockets, its deadlines shortened. Client and server share the test's loop. */
#ifndef TESTS_SERVER_WORLD_H
#define TESTS_SERVER_WORLD_H

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

HM_UNUSED static void get_ok(void *arg, struct server_request *r)
{
	(void)arg;
	server_answer_text(r, 200, "ok\n");
}

HM_UNUSED static void get_big(void *arg, struct server_request *r)
{
	struct str body = { 0 };

	(void)arg;
	for (size_t i = 0; i < BIG / 64; i++)
		str_add(&body, "0123456789012345678901234567890123456789012345678901234567890123");
	server_answer(r, 200, SERVER_TEXT, &body);
}

HM_UNUSED static void post_count(void *arg, struct server_request *r)
{
	char text[32];

	(void)arg;
	server_body(r, &last_body);
	snprintf(text, sizeof text, "%zu bytes\n", last_body);
	server_answer_text(r, 200, text);
}

HM_UNUSED static void post_keep(void *arg, struct server_request *r)
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

HM_UNUSED static const struct conns_limits roomy = { LONG_MS, LONG_MS, LONG_MS, LONG_MS, 100, 64 << 20 };

HM_UNUSED static void start(const struct conns_limits *limits)
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

HM_UNUSED static void finish(void)
{
	server_free(HM_STEAL(server));
	secrets_free(HM_STEAL(secrets));
	loop_free(HM_STEAL(loop));
}

HM_UNUSED static void turn(void)
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

HM_UNUSED static int client(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server_port(server)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

HM_UNUSED static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What came so far; *ended: the server closed. */
HM_UNUSED static size_t hear(int fd, char *out, size_t cap, bool *ended)
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

HM_UNUSED static bool is_closed(int fd)
{
	char buf[4096];
	bool ended;

	hear(fd, buf, sizeof buf, &ended);
	return ended;
}

/* An answer with this status and, at its end, this body. */
HM_UNUSED static void expect(int fd, const char *status, const char *tail)
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

HM_UNUSED static void ask_ok(void)
{
	int fd = client();

	say(fd, "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
	expect(fd, "200", "ok\n");
	close(fd);
}

HM_UNUSED static uint64_t dropped(enum conn_drop why)
{
	return server_conns_stats(server)->dropped[why];
}

#define OPEN (server_conns_stats(server)->open)

#endif
