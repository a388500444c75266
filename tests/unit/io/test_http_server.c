#include "io/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/unit.h"

static struct loop *loop;
static struct http_server *server;
static int health; /* what /healthz answers */
static int calls;

static int get_health(void *arg, struct str *body)
{
	assert_ptr_equal(arg, &calls);
	calls++;
	str_add(body, health == 200 ? "ok\n" : "");
	return health;
}

static int get_big(void *arg, struct str *body)
{
	(void)arg;
	for (int i = 0; i < 100000; i++)
		str_add(body, "0123456789");
	return 200;
}

/* Parts of a page: three, the second of them empty; many of 1,000 bytes where `endless`. */
static int begun, ended, added;
static bool endless, no_memory;

static void *begin_parts(void *arg)
{
	assert_ptr_equal(arg, &calls);
	begun += !no_memory;
	added = 0;
	return no_memory ? NULL : &begun;
}

static bool add_part(void *page, struct str *body)
{
	static const char *const parts[] = { "first\n", "", "0123456789abcdef\n" };

	assert_ptr_equal(page, &begun);
	if (endless)
		str_addf(body, "%01000d", 0);
	else
		str_add(body, parts[added]);
	added++;
	return endless || added < 3;
}

static void end_parts(void *page)
{
	assert_ptr_equal(page, &begun);
	ended++;
}

static const struct http_parts parts = { begin_parts, add_part, end_parts };

static const struct http_page pages[] = {
	{ .path = "/healthz", .get = get_health },
	{ .path = "/big", .get = get_big },
	{ .path = "/parts", .parts = &parts },
};

static int start(void **state)
{
	struct hm_err e;

	(void)state;
	health = 200;
	calls = begun = ended = 0;
	endless = no_memory = false;
	return loop_new(&loop, &e) == 0 &&
			       http_server_new(loop, "127.0.0.1:0", pages, HM_COUNT(pages), &calls, &server, &e) == 0
		       ? 0
		       : -1;
}

static int end(void **state)
{
	(void)state;
	http_server_free(HM_STEAL(server));
	loop_free(loop);
	return 0;
}

static int dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)http_server_port(server)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static void turn(void)
{
	struct hm_err e;

	assert_int_equal(loop_run_once(loop, 5, &e), 0);
}

/* What comes until the server closes; the socket is closed. */
static void read_all(int fd, struct str *out)
{
	char buf[65536];

	str_clear(out);
	for (int i = 0; i < 2000; i++) {
		ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);

		if (n > 0)
			str_add_n(out, buf, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			break;
		else
			turn();
	}
	close(fd);
	turn();
}

static void ask(const char *request, struct str *out)
{
	int fd = dial();

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	read_all(fd, out);
}

static void pages_are_answered(void **state)
{
	hm_auto_str s = { 0 };

	(void)state;
	ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &s);
	assert_string_equal(str_text(&s), "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
					  "Content-Length: 3\r\nConnection: close\r\n\r\nok\n");
	ask("GET /healthz?verbose=1 HTTP/1.0\n\n", &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 200 OK\r\n", 17);
	ask("HEAD /healthz HTTP/1.1\r\n\r\n", &s);
	assert_non_null(strstr(str_text(&s), "Content-Length: 3\r\n"));
	assert_string_equal(strstr(str_text(&s), "\r\n\r\n"), "\r\n\r\n");
	health = 503;
	ask("GET /healthz HTTP/1.1\r\n\r\n", &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 503 Service Unavailable\r\n", 34);
	assert_non_null(strstr(str_text(&s), "\r\n\r\nService Unavailable\n"));
	assert_int_equal(calls, 4);
}

static void what_is_no_page_gets_its_status(void **state)
{
	static const struct {
		const char *request, *status;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "404 Not Found" },
		{ "GET /healthz/ HTTP/1.1\r\n\r\n", "404 Not Found" },
		{ "POST /healthz HTTP/1.1\r\n\r\n", "405 Method Not Allowed" },
		{ "GET healthz HTTP/1.1\r\n\r\n", "400 Bad Request" },
		{ "GET /healthz\r\n\r\n", "400 Bad Request" },
		{ "GET /healthz SPDY/1\r\n\r\n", "400 Bad Request" },
		{ "\r\n\r\n", "400 Bad Request" },
		{ "\x16\x03\x01\n\n", "400 Bad Request" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str s = { 0 };
		char want[64];

		ask(cases[i].request, &s);
		snprintf(want, sizeof want, "HTTP/1.1 %s\r\n", cases[i].status);
		assert_memory_equal(str_text(&s), want, strlen(want));
	}
	assert_int_equal(calls, 0);
}

static void a_request_may_come_in_pieces(void **state)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
	hm_auto_str s = { 0 };
	int fd = dial();

	(void)state;
	for (size_t i = 0; i < sizeof request - 1; i++) {
		assert_int_equal(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
		turn();
	}
	read_all(fd, &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 200 OK\r\n", 17);
}

static void a_request_without_end_is_cut_off(void **state)
{
	hm_auto_str s = { 0 }, request = { 0 };

	(void)state;
	str_add(&request, "GET /healthz HTTP/1.1\r\n");
	while (request.n <= HTTP_MAX_REQUEST_BYTES)
		str_add(&request, "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
	ask(str_text(&request), &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 431 ", 13);
}

static void a_long_page_arrives_whole(void **state)
{
	hm_auto_str s = { 0 };

	(void)state;
	ask("GET /big HTTP/1.1\r\n\r\n", &s);
	assert_non_null(strstr(str_text(&s), "Content-Length: 1000000\r\n"));
	assert_int_equal(strlen(strstr(str_text(&s), "\r\n\r\n") + 4), 1000000);
}

static void a_page_in_parts(void **state)
{
	hm_auto_str s = { 0 };

	(void)state;
	ask("GET /parts?a=b HTTP/1.1\r\n\r\n", &s);
	assert_string_equal(str_text(&s), "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
					  "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
					  "6\r\nfirst\n\r\n11\r\n0123456789abcdef\n\r\n0\r\n\r\n");
	ask("GET /parts HTTP/1.0\r\n\r\n", &s);
	assert_string_equal(str_text(&s), "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
					  "Connection: close\r\n\r\nfirst\n0123456789abcdef\n");
	assert_int_equal(begun, 2);
	ask("HEAD /parts HTTP/1.1\r\n\r\n", &s);
	assert_string_equal(str_text(&s), "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
					  "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
	no_memory = true;
	ask("GET /parts HTTP/1.1\r\n\r\n", &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 503 ", 13);
	assert_int_equal(begun, 2);
	assert_int_equal(ended, 2);
}

/* One part in each turn; who reads nothing more costs nothing more, and who goes away ends the page. */
static void parts_are_made_as_they_are_read(void **state)
{
	hm_auto_str s = { 0 };
	int fd = dial(), before;

	(void)state;
	endless = true;
	assert_true(send(fd, "GET /parts HTTP/1.1\r\n\r\n", 23, MSG_NOSIGNAL) > 0);
	for (int i = 0; i < 20; i++) {
		before = added;
		turn();
		assert_true(added <= before + 1);
	}
	assert_true(added > 10);
	for (int i = 0; i < 100000 && added > before; i++) {
		before = added;
		turn();
	}
	assert_int_equal(added, before);
	ask("GET /healthz HTTP/1.1\r\n\r\n", &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 200 OK\r\n", 17);
	assert_int_equal(ended, 0);
	close(fd);
	for (int i = 0; i < 100 && ended == 0; i++)
		turn();
	assert_int_equal(ended, 1);
}

static void silent_connections_do_not_keep_others_out(void **state)
{
	int silent[HTTP_MAX_CONNECTIONS + 10];
	hm_auto_str s = { 0 };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(silent); i++) {
		silent[i] = dial();
		turn();
	}
	ask("GET /healthz HTTP/1.1\r\n\r\n", &s);
	assert_memory_equal(str_text(&s), "HTTP/1.1 200 OK\r\n", 17);
	for (size_t i = 0; i < HM_COUNT(silent); i++)
		close(silent[i]);
}

/* A new connection every now and then must not put off the deadline of a silent one. */
static void a_silent_connection_ends_at_its_deadline(void **state)
{
	int silent = dial();
	hm_auto_str s = { 0 };
	uint64_t before, took = 0;
	char c;

	(void)state;
	turn();
	before = loop_now_ms(loop);
	while (recv(silent, &c, 1, MSG_DONTWAIT) < 0 && took < 2 * HTTP_DEADLINE_MS) {
		ask("GET /healthz HTTP/1.1\r\n\r\n", &s);
		usleep(20000);
		took = loop_now_ms(loop) - before;
	}
	close(silent);
	assert_in_range(took, HTTP_DEADLINE_MS - 100, HTTP_DEADLINE_MS + 2000);
}

static void a_peer_that_goes_away_leaves_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		const struct linger reset = { 1, 0 };
		int fd = dial();

		assert_true(send(fd, "GET /big HTTP/1.1\r\n\r\n", 21, MSG_NOSIGNAL) > 0);
		turn();
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		close(fd);
		turn();
	}
}

static void addresses(void **state)
{
	static const struct {
		const char *address, *want;
	} bad[] = {
		{ "8080", "HTTP server: \"8080\" is not of the form ADDRESS:PORT" },
		{ "127.0.0.1:", "HTTP server: \"127.0.0.1:\" is not of the form ADDRESS:PORT" },
		{ "127.0.0.1:65536", "HTTP server: \"127.0.0.1:65536\" is not of the form ADDRESS:PORT" },
		{ "localhost:80", "HTTP server: \"localhost:80\": the address is neither IPv4 nor [IPv6]" },
		{ "::1:80", "HTTP server: \"::1:80\": the address is neither IPv4 nor [IPv6]" },
		{ "[127.0.0.1]:80", "HTTP server: \"[127.0.0.1]:80\": the address is neither IPv4 nor [IPv6]" },
	};
	struct http_server *other = NULL;
	struct hm_err e;
	char taken[32];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		assert_int_equal(http_server_new(loop, bad[i].address, pages, 1, NULL, &other, &e), -HM_EINVAL);
		assert_string_equal(e.msg, bad[i].want);
	}
	snprintf(taken, sizeof taken, "127.0.0.1:%u", http_server_port(server));
	assert_int_equal(http_server_new(loop, taken, pages, 1, NULL, &other, &e), -HM_EIO);
	assert_non_null(strstr(e.msg, "Address already in use"));
	assert_int_equal(http_server_new(loop, ":0", pages, 1, NULL, &other, &e), 0);
	assert_true(http_server_port(other) > 0);
	http_server_free(other);
}

static int make_one(void *arg)
{
	hm_auto(http_server) *other = NULL;
	struct hm_err e;

	(void)arg;
	return http_server_new(loop, "127.0.0.1:0", pages, 1, NULL, &other, &e);
}

static void survives_every_failed_allocation(void **state)
{
	(void)state;
	sweep_check("http_server", make_one, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

/* A listening socket stays readable while there is no descriptor for what waits: no reason to spin. */
static void without_descriptors_it_rests_and_comes_back(void **state)
{
	struct rlimit before, none;
	hm_auto_str s = { 0 };
	int fd = dial(), turns = 0;
	uint64_t end;

	(void)state;
	assert_int_equal(send(fd, "GET /healthz HTTP/1.1\r\n\r\n", 25, MSG_NOSIGNAL), 25);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3; /* what is open stays open */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (end = loop_now_ms(loop) + 200; loop_now_ms(loop) < end; turns++) {
		struct hm_err e;

		assert_int_equal(loop_run_once(loop, 50, &e), 0);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(turns < 20);
	read_all(fd, &s);
	assert_non_null(strstr(str_text(&s), "200 OK"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_are_answered),
		TEST(what_is_no_page_gets_its_status),
		TEST(a_request_may_come_in_pieces),
		TEST(a_request_without_end_is_cut_off),
		TEST(a_long_page_arrives_whole),
		TEST(a_page_in_parts),
		TEST(parts_are_made_as_they_are_read),
		TEST(silent_connections_do_not_keep_others_out),
		TEST(a_silent_connection_ends_at_its_deadline),
		TEST(a_peer_that_goes_away_leaves_nothing),
		TEST(without_descriptors_it_rests_and_comes_back),
		TEST(addresses),
		TEST(survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
