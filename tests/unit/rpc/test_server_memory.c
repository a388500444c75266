/* Server and client on a real socket while memory is short: every allocation of ours fails once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/str.h"
#include "harness/sweep.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "unit/rpc/pair.h"

struct fixture {
	struct pair users; /* what the handlers log; no engines of its own */
	struct loop *loop;
	struct rpc_server *server;
	struct rpc_client *client;
	char path[64];
	size_t done;
	int status;
};

static void on_done(void *arg, int status, const char *text)
{
	struct fixture *f = arg;

	(void)text;
	f->done++;
	f->status = status;
}

static void hush(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

/* One call by a client of its own: true when it went well. It must end in any case. */
static bool one_call(struct fixture *f)
{
	const struct rpc_reply reply = { NULL, on_done, f };
	struct hm_err e;
	bool good = false;

	f->done = 0;
	if (rpc_client_new(f->loop, f->path, &f->client, &e) == 0) {
		uint64_t end_ms = loop_now_ms(f->loop) + 5000;

		if (rpc_client_call(f->client, "/t.T/Echo", (const uint8_t *)"hi", 2, 3000, &reply, NULL, &e) == 0) {
			while (f->done == 0 && loop_now_ms(f->loop) < end_ms)
				assert_int_equal(loop_run_once(f->loop, 20, &e), 0);
			assert_int_equal(f->done, 1);
		}
		good = f->done == 1 && f->status == RPC_OK;
		rpc_client_free(HM_STEAL(f->client));
	}
	return good;
}

static int scenario(void *arg)
{
	struct fixture f = { 0 };
	int good = -1;
	struct hm_err e;

	snprintf(f.path, sizeof f.path, "%s", (const char *)arg);
	if (loop_new(&f.loop, &e) == 0 &&
	    rpc_server_new(f.loop, f.path, pair_methods, PAIR_METHODS, &f.users, &f.server, &e) == 0) {
		good = 0;
		for (int i = 0; i < 3; i++)
			good += one_call(&f);
		assert_true(good >= 2); /* one failed allocation costs one call at most */
	}
	rpc_server_free(f.server);
	loop_free(f.loop);
	str_fini(&f.users.log);
	return good == 3 ? 0 : -1;
}

static void test_memory(void **state)
{
	char folder[] = "/tmp/test_rpc_server.XXXXXX", path[64];
	struct sweep_result r;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/s.sock", folder);
	log_set_sink(hush, NULL);
	r = sweep_run(scenario, path);
	log_set_sink(NULL, NULL);
	assert_int_equal(rmdir(folder), 0); /* no socket was left */
	assert_false(r.failed);
	assert_in_range(r.allocations, 200, 10000);
	if (r.leaked > 0)
		fail_msg("%zu blocks leaked when allocation %zu failed", r.leaked, r.leaked_at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
