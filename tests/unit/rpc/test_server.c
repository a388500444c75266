/* Server and client on real sockets, in one loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "rpc/client.h"
#include "rpc/limits.h"
#include "rpc/server.h"
#include "unit/rpc/pair.h"

struct fixture {
	struct pair users; /* log, held call; no engines of its own */
	struct loop *loop;
	struct rpc_server *server;
	struct rpc_client *client;
	char folder[64], path[96];
	size_t done;
	bool free_client, free_server; /* in the next callback */
};

static void on_done(void *arg, int status, const char *text)
{
	struct fixture *f = arg;

	str_addf(&f->users.log, "done %s %s;", rpc_status_name(status), text);
	f->done++;
	if (f->free_client) {
		f->free_client = false;
		rpc_client_free(HM_STEAL(f->client));
	}
}

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct fixture *f = arg;

	str_addf(&f->users.log, "message %zu %.*s;", n, (int)HM_MIN(n, (size_t)16), (const char *)msg);
	if (f->free_client) {
		f->free_client = false;
		rpc_client_free(HM_STEAL(f->client));
	}
}

static void call(struct fixture *f, const char *path, const char *text, uint64_t timeout_ms)
{
	const struct rpc_reply reply = { on_message, on_done, f };
	struct hm_err e;

	if (rpc_client_call(f->client, path, (const uint8_t *)text, strlen(text), timeout_ms, &reply, &f->users.request,
			    &e) < 0)
		fail_msg("%s", e.msg);
}

/* Runs the loop until the log holds the text. */
static void wait_for(struct fixture *f, const char *text)
{
	uint64_t end_ms = loop_now_ms(f->loop) + 10000;
	struct hm_err e;

	while (strstr(str_text(&f->users.log), text) == NULL) {
		if (loop_now_ms(f->loop) > end_ms)
			fail_msg("\"%s\" did not come, but \"%s\"", text, str_text(&f->users.log));
		assert_int_equal(loop_run_once(f->loop, 20, &e), 0);
	}
}

static void wait_connections(struct fixture *f, size_t n)
{
	uint64_t end_ms = loop_now_ms(f->loop) + 10000;
	struct hm_err e;

	while (rpc_server_connections(f->server) != n) {
		if (loop_now_ms(f->loop) > end_ms)
			fail_msg("%zu connections, not %zu", rpc_server_connections(f->server), n);
		assert_int_equal(loop_run_once(f->loop, 20, &e), 0);
	}
}

/* Handler that frees the server it runs in. */
static void suicide(struct rpc_call *rpc, const uint8_t *msg, size_t n, void *arg)
{
	struct fixture *f = HM_CONTAINER(arg, struct fixture, users);

	(void)rpc, (void)msg, (void)n;
	str_add(&f->users.log, "suicide;");
	rpc_server_free(HM_STEAL(f->server));
	str_add(&f->users.log, "freed;");
}

static void suicide_gone(struct rpc_call *rpc, void *arg)
{
	struct pair *p = arg;

	(void)rpc;
	str_add(&p->log, "gone suicide;");
}

static struct rpc_method methods[PAIR_METHODS + 1];

static struct rpc_server *serve(struct fixture *f)
{
	struct rpc_server *s;
	struct hm_err e;

	if (rpc_server_new(f->loop, f->path, methods, HM_COUNT(methods), &f->users, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct hm_err e;

	memcpy(methods, pair_methods, sizeof pair_methods);
	methods[PAIR_METHODS] = (struct rpc_method) { "/t.T/Suicide", suicide, suicide_gone };
	snprintf(f->folder, sizeof f->folder, "/tmp/test_rpc_server.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof f->path, "%s/s.sock", f->folder);
	assert_int_equal(loop_new(&f->loop, &e), 0);
	f->server = serve(f);
	if (rpc_client_new(f->loop, f->path, &f->client, &e) < 0)
		fail_msg("%s", e.msg);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	rpc_client_free(f->client);
	rpc_server_free(f->server);
	loop_free(f->loop);
	unlink(f->path);
	assert_int_equal(rmdir(f->folder), 0);
	str_fini(&f->users.log);
	free(f);
	return 0;
}

static void test_calls(void **state)
{
	struct fixture *f = *state;

	call(f, "/t.T/Echo", "hello", 1000);
	wait_for(f, "done");
	assert_string_equal(str_text(&f->users.log), "call Echo 5 hello;message 5 hello;done OK ;");
	str_clear(&f->users.log);
	call(f, "/t.T/Three", "x", 0);
	wait_for(f, "done");
	assert_string_equal(str_text(&f->users.log),
			    "call Three 1 x;message 4 eins;message 0 ;message 4 drei;done OK ;");
	str_clear(&f->users.log);
	call(f, "/t.T/Latest", "x", 0);
	wait_for(f, "done");
	assert_string_equal(str_text(&f->users.log), "call Latest 1 x;message 200000 4;done OK ;");
}

static void test_deadline(void **state)
{
	struct fixture *f = *state;
	uint64_t start_ms = loop_now_ms(f->loop);

	call(f, "/t.T/Hold", "x", 60);
	wait_for(f, "done");
	assert_non_null(strstr(str_text(&f->users.log), "done DEADLINE_EXCEEDED"));
	assert_in_range(loop_now_ms(f->loop) - start_ms, 59, 2000);
	wait_for(f, "gone Hold");
}

static void test_answer_later(void **state)
{
	struct fixture *f = *state;

	call(f, "/t.T/Hold", "x", 0);
	wait_for(f, "call Hold");
	rpc_call_reply(f->users.held, (const uint8_t *)"later", 5);
	f->users.held = NULL;
	wait_for(f, "message 5 later;done OK ;");
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;

	call(f, "/t.T/Hold", "x", 0);
	wait_for(f, "call Hold");
	rpc_request_cancel(f->users.request);
	assert_non_null(strstr(str_text(&f->users.log), "done CANCELLED"));
	wait_for(f, "gone Hold");
}

static void test_free_server_tells_the_peer(void **state)
{
	struct fixture *f = *state;
	struct hm_err e;
	const struct rpc_reply reply = { on_message, on_done, f };

	call(f, "/t.T/Send", "x", 0);
	wait_for(f, "message 1 x;");
	rpc_server_free(HM_STEAL(f->server));
	assert_non_null(strstr(str_text(&f->users.log), "gone Send;"));
	assert_int_equal(access(f->path, F_OK), -1);
	wait_for(f, "done UNAVAILABLE the server is shutting down;");
	for (int i = 0; i < 5; i++)
		assert_int_equal(loop_run_once(f->loop, 5, &e), 0);
	assert_int_equal(rpc_client_call(f->client, "/t.T/Echo", NULL, 0, 0, &reply, NULL, &e), -HM_EAGAIN);
}

static void test_free_server_inside_its_handler(void **state)
{
	struct fixture *f = *state;

	call(f, "/t.T/Hold", "x", 0);
	call(f, "/t.T/Suicide", "x", 0);
	wait_for(f, "freed;");
	assert_non_null(strstr(str_text(&f->users.log), "suicide;gone Hold;gone suicide;freed;"));
	wait_for(f, "done UNAVAILABLE the server is shutting down;");
	while (f->done < 2)
		wait_for(f, "done UNAVAILABLE the server is shutting down;done UNAVAILABLE the server");
}

static void test_free_client_inside_its_callbacks(void **state)
{
	static const char *const methods_to_call[] = { "/t.T/Three", "/t.T/Fail" };
	struct fixture *f = *state;
	struct hm_err e;

	for (size_t i = 0; i < HM_COUNT(methods_to_call); i++) {
		str_clear(&f->users.log);
		f->done = 0;
		call(f, "/t.T/Hold", "x", 0);
		call(f, methods_to_call[i], "x", 0);
		f->free_client = true;
		wait_for(f, "done CANCELLED");
		assert_null(f->client);
		wait_connections(f, 0);
		assert_int_equal(f->done, 2);
		assert_non_null(strstr(str_text(&f->users.log), "done CANCELLED the client was closed;"));
		assert_int_equal(rpc_client_new(f->loop, f->path, &f->client, &e), 0);
	}
}

static void test_client_free_ends_its_calls(void **state)
{
	struct fixture *f = *state;

	call(f, "/t.T/Hold", "x", 0);
	wait_for(f, "call Hold");
	rpc_client_free(HM_STEAL(f->client));
	assert_non_null(strstr(str_text(&f->users.log), "done CANCELLED the client was closed;"));
	wait_for(f, "gone Hold;");
	wait_connections(f, 0);
}

/* A one-shot client whose callback frees it, freed by someone else meanwhile. */
static void test_client_free_inside_client_free(void **state)
{
	struct fixture *f = *state;
	struct rpc_client *c = f->client;

	call(f, "/t.T/Hold", "x", 0);
	wait_for(f, "call Hold");
	f->free_client = true;
	rpc_client_free(c);
	assert_null(f->client);
	assert_int_equal(f->done, 1);
}

static void test_ownership_of_the_file(void **state)
{
	struct fixture *f = *state;
	struct rpc_server *second;
	struct stat st;
	char away[112];

	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(rpc_server_owns_socket(f->server));
	snprintf(away, sizeof away, "%s.away", f->path);
	assert_int_equal(rename(f->path, away), 0);
	assert_false(rpc_server_owns_socket(f->server));
	assert_int_equal(rename(away, f->path), 0);
	assert_true(rpc_server_owns_socket(f->server));
	second = serve(f); /* takes the path over, as after a restart */
	assert_false(rpc_server_owns_socket(f->server));
	rpc_server_free(HM_STEAL(f->server));
	assert_int_equal(access(f->path, F_OK), 0);
	rpc_server_free(second);
	assert_int_equal(access(f->path, F_OK), -1);
}

static void test_refused_paths(void **state)
{
	struct fixture *f = *state;
	char long_path[120], file[80];
	struct rpc_server *s;
	struct rpc_client *c;
	struct hm_err e;
	FILE *out;

	memset(long_path, 'x', sizeof long_path);
	long_path[108] = '\0';
	assert_int_equal(rpc_server_new(f->loop, long_path, methods, 1, NULL, &s, &e), -HM_EINVAL);
	assert_non_null(strstr(e.msg, "108"));
	assert_int_equal(rpc_client_new(f->loop, long_path, &c, &e), -HM_EINVAL);
	snprintf(file, sizeof file, "%s/file", f->folder);
	out = fopen(file, "w");
	assert_non_null(out);
	fclose(out);
	assert_int_equal(rpc_server_new(f->loop, file, methods, 1, NULL, &s, &e), -HM_EEXIST);
	assert_non_null(strstr(e.msg, file));
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(rpc_client_new(f->loop, file, &c, &e), -HM_EAGAIN);
	unlink(file);
	assert_int_equal(rpc_client_new(f->loop, file, &c, &e), -HM_ENOTFOUND);
	assert_int_equal(rpc_server_new(f->loop, "/nonexistent/s.sock", methods, 1, NULL, &s, &e), -HM_ENOTFOUND);
}

static int connect_raw(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static void test_silent_ones_give_way(void **state)
{
	struct fixture *f = *state;
	int fds[200];
	struct hm_err e;

	call(f, "/t.T/Echo", "first", 0); /* ours has greeted; it is the oldest, and idle */
	wait_for(f, "done OK");
	for (size_t i = 0; i < HM_COUNT(fds); i++)
		fds[i] = connect_raw(f->path);
	wait_connections(f, RPC_MAX_CONNECTIONS);
	for (int i = 0; i < 50; i++)
		assert_int_equal(loop_run_once(f->loop, 1, &e), 0);
	assert_int_equal(rpc_server_connections(f->server), RPC_MAX_CONNECTIONS);
	call(f, "/t.T/Echo", "hello", 0);
	wait_for(f, "message 5 hello;done OK ;");
	for (size_t i = 0; i < HM_COUNT(fds); i++)
		close(fds[i]);
	wait_connections(f, 1);
}

/* All have greeted: the oldest without a call goes, and where all have calls the new one is refused. */
static void test_who_is_evicted(void **state)
{
	struct fixture *f = *state;
	struct rpc_client *others[RPC_MAX_CONNECTIONS];
	struct rpc_client *first = f->client;
	struct hm_err e;
	size_t held = 0;

	wait_connections(f, 1);
	for (size_t i = 0; i < HM_COUNT(others) - 1; i++) {
		assert_int_equal(rpc_client_new(f->loop, f->path, &f->client, &e), 0);
		others[i] = f->client;
		call(f, "/t.T/Hold", "x", 0);
		wait_connections(f, i + 2);
		str_clear(&f->users.log);
		wait_for(f, "call Hold");
		held++;
	}
	f->client = first;
	call(f, "/t.T/Echo", "x", 0);
	wait_for(f, "done OK"); /* greeted and idle */
	str_clear(&f->users.log);
	assert_int_equal(rpc_client_new(f->loop, f->path, &f->client, &e), 0);
	call(f, "/t.T/Hold", "x", 0); /* takes the place of `first` */
	wait_for(f, "call Hold");
	assert_int_equal(rpc_server_connections(f->server), RPC_MAX_CONNECTIONS);
	assert_null(strstr(str_text(&f->users.log), "gone"));
	others[HM_COUNT(others) - 1] = f->client;
	assert_int_equal(rpc_client_new(f->loop, f->path, &f->client, &e), 0);
	call(f, "/t.T/Echo", "x", 0);
	wait_for(f, "done UNAVAILABLE connection lost;");
	assert_null(strstr(str_text(&f->users.log), "gone"));
	rpc_client_free(first);
	for (size_t i = 0; i < HM_COUNT(others); i++)
		rpc_client_free(others[i]);
	wait_connections(f, 0);
}

/* Snapshots to a peer that does not read: the newest is what it gets when it reads again. */
static void test_slow_reader(void **state)
{
	static uint8_t snapshot[1000000];
	struct fixture *f = *state;
	struct hm_err e;

	call(f, "/t.T/Hold", "x", 0);
	wait_for(f, "call Hold");
	for (int i = 0; i < 300; i++) {
		memset(snapshot, i < 299 ? 'o' : 'n', sizeof snapshot);
		if (rpc_call_send_latest(f->users.held, snapshot, sizeof snapshot, &e) < 0)
			fail_msg("%s", e.msg);
	}
	wait_for(f, "message 1000000 nnnnnnnnnnnnnnnn;");
	assert_null(strstr(str_text(&f->users.log), "ooo"));
	rpc_call_finish(f->users.held, RPC_OK, NULL);
	wait_for(f, "done OK");
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(test_calls),
		WITH_SERVER(test_deadline),
		WITH_SERVER(test_answer_later),
		WITH_SERVER(test_cancel),
		WITH_SERVER(test_free_server_tells_the_peer),
		WITH_SERVER(test_free_server_inside_its_handler),
		WITH_SERVER(test_free_client_inside_its_callbacks),
		WITH_SERVER(test_client_free_ends_its_calls),
		WITH_SERVER(test_client_free_inside_client_free),
		WITH_SERVER(test_ownership_of_the_file),
		WITH_SERVER(test_refused_paths),
		WITH_SERVER(test_silent_ones_give_way),
		WITH_SERVER(test_who_is_evicted),
		WITH_SERVER(test_slow_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
