/* The client's engine on whatever a server sends: each request is done exactly once, no message comes behind `done`,
 * and however the bytes are cut, the caller sees the same. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/str.h"
#include "core/check.h"
#include "rpc/conn.h"

enum { REQUESTS = 4 };

struct user {
	struct str *log;
	int number, done;
};

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct user *u = arg;

	CHECK(u->done == 0 && msg != NULL);
	str_addf(u->log, "%d message %zu;", u->number, n);
}

static void on_done(void *arg, int status, const char *text)
{
	struct user *u = arg;

	CHECK(u->done == 0);
	u->done++;
	str_addf(u->log, "%d done %d %zu;", u->number, status, strlen(text));
}

static void pull_all(struct rpc_conn *c)
{
	uint8_t buf[1000];

	while (rpc_conn_pull(c, buf, sizeof buf) > 0)
		continue;
}

static void converse(const uint8_t *data, size_t n, size_t step, bool pull, struct str *log)
{
	struct user users[REQUESTS] = { 0 };
	struct rpc_conn *c;

	if (rpc_conn_new_client(0, &c, NULL) < 0)
		return;
	for (int i = 0; i < REQUESTS; i++) {
		const struct rpc_reply reply = { on_message, on_done, &users[i] };

		users[i] = (struct user) { log, i, 0 };
		CHECK(rpc_conn_call(c, 0, "/t.T/X", (const uint8_t *)"x", 1, i == 3 ? 500 : 0, &reply, NULL, NULL) ==
		      0);
	}
	pull_all(c);
	for (size_t at = 0; at < n; at += step) {
		if (rpc_conn_feed(c, data + at, HM_MIN(step, n - at), 0) < 0)
			break;
		if (pull)
			pull_all(c);
	}
	rpc_conn_tick(c, 1000);
	if (n % 2 == 0)
		rpc_conn_close(c);
	rpc_conn_lost(c);
	for (int i = 0; i < REQUESTS; i++)
		CHECK(users[i].done == 1);
	rpc_conn_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_str whole = { 0 }, cut = { 0 }, pulled = { 0 };

	converse(data, n, n + 1, false, &whole);
	converse(data, n, 1 + n % 13, false, &cut);
	CHECK(strcmp(str_text(&whole), str_text(&cut)) == 0);
	converse(data, n, 1 + n % 101, true, &pulled);
	return 0;
}
