/* /healthz and /readyz over what the parts say (ld --wrap). */
#include "agent/metrics/health.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "core/cleanup.h"
#include "harness/sweep.h"
#include "harness/unit.h"

bool __wrap_resource_is_registered(const struct resource *r);
const char *__wrap_resource_trouble(const struct resource *r);
uint64_t __wrap_driver_hung_ms(const struct driver *d);
struct service_stats __wrap_resource_stats(const struct resource *r);

static bool registered;
static const char *trouble = "";
static uint64_t hung_ms;

bool __wrap_resource_is_registered(const struct resource *r)
{
	(void)r;
	return registered;
}

const char *__wrap_resource_trouble(const struct resource *r)
{
	(void)r;
	return trouble;
}

uint64_t __wrap_driver_hung_ms(const struct driver *d)
{
	(void)d;
	return hung_ms;
}

struct service_stats __wrap_resource_stats(const struct resource *r)
{
	(void)r;
	return (struct service_stats) { .allocations = 7, .allocate_errors = 1, .starts = 6, .start_errors = 2 };
}

static void hush(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

/* The answer to one GET, head and body; "" where the server closed without one. */
static int get(struct loop *l, unsigned port, const char *path, char *out, size_t room)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	hm_auto_fd fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t at = 0;
	struct hm_err e;
	char request[128];
	int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n\r\n", path);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(send(fd, request, (size_t)n, 0), n);
	for (int i = 0; i < 2000; i++) {
		ssize_t got;

		assert_int_equal(loop_run_once(l, 1, &e), 0);
		got = recv(fd, out + at, room - 1 - at, MSG_DONTWAIT);
		if (got > 0)
			at += (size_t)got;
		else if (got == 0 || errno != EAGAIN)
			break;
	}
	out[at] = '\0';
	return at > 0 ? 0 : -1;
}

/* The resource is not looked into: any address will do. */
static struct resource *some_resource(void)
{
	static char one;

	return (struct resource *)(void *)&one;
}

static void what_the_pages_say(void **state)
{
	static const struct {
		const char *path;
		bool registered;
		const char *trouble;
		uint64_t hung_ms;
		const char *status, *body, *not_in_it;
	} rows[] = {
		{ "/healthz", false, "x", 9, "200 OK", "\r\n\r\nok\n", "x" },
		{ "/readyz", false, "", 0, "503 Service", "not registered with the kubelet\n", "why" },
		{ "/readyz", false, "the words", 0, "503 Service", "why: the words\n", "nvml" },
		{ "/readyz", true, "", 0, "200 OK",
		  "\r\n\r\nok\nallocations: 7\nallocate errors: 1\nstarts: 6\nstart errors: 2\n", "why" },
		{ "/readyz", true, "", 4321, "200 OK", "ok\nnvml: no answer for 4321 ms\n", "why" },
		{ "/", true, "", 0, "404 Not Found", "Not Found\n", "ok" },
	};
	struct health_sources sources = { some_resource(), NULL };
	hm_auto(http_server) *s = NULL;
	hm_auto(loop) *l = NULL;
	struct hm_err e;
	char got[2048];

	(void)state;
	assert_int_equal(loop_new(&l, &e), 0);
	assert_int_equal(health_serve(l, "127.0.0.1:0", &sources, &s, &e), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		registered = rows[i].registered;
		trouble = rows[i].trouble;
		hung_ms = rows[i].hung_ms;
		assert_int_equal(get(l, http_server_port(s), rows[i].path, got, sizeof got), 0);
		if (strstr(got, rows[i].status) == NULL || strstr(got, rows[i].body) == NULL ||
		    strstr(strstr(got, "\r\n\r\n"), rows[i].not_in_it) != NULL)
			fail_msg("row %zu: %s", i, got);
	}
	http_server_free(HM_STEAL(s));
}

static void a_bad_address_names_the_option(void **state)
{
	static const char *const bad[] = { "", "8080", "127.0.0.1:", "127.0.0.1:70000", "here:80" };
	struct health_sources sources = { some_resource(), NULL };
	hm_auto(loop) *l = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_new(&l, &e), 0);
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct http_server *s = NULL;

		assert_int_equal(health_serve(l, bad[i], &sources, &s, &e), -HM_EINVAL);
		assert_null(s);
		assert_ptr_equal(strstr(e.msg, "--healthz-bind-address"), e.msg);
	}
}

/* A page for which memory is short is no page, or 503; the next one is whole. */
static int scenario(void *arg)
{
	struct health_sources sources = { some_resource(), NULL };
	struct http_server *s = NULL;
	struct loop *l = NULL;
	struct hm_err e;
	char got[2048];
	int r = -1;

	(void)arg;
	registered = true;
	if (loop_new(&l, &e) == 0 && health_serve(l, "127.0.0.1:0", &sources, &s, &e) == 0) {
		r = get(l, http_server_port(s), "/readyz", got, sizeof got);
		if (r == 0 && strstr(got, "200 OK") == NULL)
			r = -1;
		if (r < 0) {
			assert_int_equal(get(l, http_server_port(s), "/readyz", got, sizeof got), 0);
			assert_non_null(strstr(got, "start errors: 2\n"));
		}
	}
	http_server_free(s);
	loop_free(l);
	return r;
}

static void sweep(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR); /* a line that is lost for want of memory is no failure */
	sweep_check("health pages", scenario, NULL);
	log_set_level(LOG_INFO);
}

static int quiet(void **state)
{
	(void)state;
	log_set_sink(hush, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_pages_say),
		cmocka_unit_test(a_bad_address_names_the_option),
		cmocka_unit_test(sweep),
	};

	return cmocka_run_group_tests(tests, quiet, NULL);
}
