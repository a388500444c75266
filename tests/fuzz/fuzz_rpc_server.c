/* The server's engine on whatever a peer sends. However the bytes are cut, the handlers must see the same; each call
 * that a handler got ends exactly once. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/str.h"
#include "core/check.h"
#include "rpc/conn.h"

struct users {
	struct str log;
	size_t open;
};

static void on_echo(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct users *u = arg;

	str_addf(&u->log, "echo %zu;", n);
	rpc_call_reply(call, msg, n);
}

static void on_hold(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct users *u = arg;
	struct hm_err e;

	str_addf(&u->log, "hold %zu;", n);
	u->open++;
	if (n > 0 && msg[0] & 1 && rpc_call_send(call, msg, n, &e) < 0)
		CHECK(e.code == HM_ELIMIT || e.code == HM_EAGAIN);
}

static void on_gone(struct rpc_call *call, void *arg)
{
	struct users *u = arg;

	(void)call;
	str_add(&u->log, "gone;");
	CHECK(u->open > 0);
	u->open--;
}

/* Methods as the recorded conversations of the corpus call them. */
static const struct rpc_method methods[] = {
	{ "/test.Echo/Echo", on_echo, NULL },
	{ "/test.Echo/Watch", on_hold, on_gone },
	{ "/test.Echo/Sleep", on_hold, on_gone },
};

static void pull_all(struct rpc_conn *c)
{
	uint8_t buf[1000];

	while (rpc_conn_pull(c, buf, sizeof buf) > 0)
		continue;
}

static void converse(const uint8_t *data, size_t n, size_t step, bool pull, struct str *log)
{
	struct users u = { 0 };
	const struct rpc_service service = { methods, HM_COUNT(methods), &u };
	struct rpc_conn *c;

	if (rpc_conn_new_server(&service, 0, &c, NULL) < 0)
		return;
	for (size_t at = 0; at < n; at += step) {
		if (rpc_conn_feed(c, data + at, HM_MIN(step, n - at), 0) < 0)
			break;
		if (pull)
			pull_all(c);
	}
	str_add(log, str_text(&u.log));
	rpc_conn_tick(c, 1000); /* deadlines */
	if (n % 2 == 0) {
		rpc_conn_close(c);
		pull_all(c);
	}
	rpc_conn_lost(c);
	CHECK(u.open == 0);
	rpc_conn_free(c);
	str_fini(&u.log);
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
