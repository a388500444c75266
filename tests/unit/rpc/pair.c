#include "unit/rpc/pair.h"

#include <string.h>

static void note_call(struct pair *p, const char *name, const uint8_t *msg, size_t n)
{
	str_addf(&p->log, "call %s %zu %.*s;", name, n, (int)HM_MIN(n, (size_t)16), (const char *)msg);
}

static void on_gone(struct rpc_call *call, void *arg)
{
	struct pair *p = arg;

	str_addf(&p->log, "gone %s;", (const char *)rpc_call_data(call));
	if (p->held == call)
		p->held = NULL;
}

static void echo(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	note_call(arg, "Echo", msg, n);
	rpc_call_reply(call, msg, n);
}

static void three(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	static const char *const answers[] = { "eins", "", "drei" };
	struct hm_err e = { 0 };

	note_call(arg, "Three", msg, n);
	for (size_t i = 0; i < HM_COUNT(answers); i++) {
		if (rpc_call_send(call, (const uint8_t *)answers[i], strlen(answers[i]), &e) < 0) {
			rpc_call_fail(call, &e);
			return;
		}
	}
	rpc_call_finish(call, RPC_OK, NULL);
}

static void fail(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	rpc_call_finish(call, RPC_NOT_FOUND, "no %");
	note_call(arg, "Fail", msg, n); /* the message is ours until we return */
}

static char name_hold[] = "Hold", name_send[] = "Send";

static void hold(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct pair *p = arg;

	note_call(p, "Hold", msg, n);
	rpc_call_set_data(call, name_hold);
	p->held = call;
}

static void latest(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	static uint8_t bytes[200000];
	struct hm_err e = { 0 };

	note_call(arg, "Latest", msg, n);
	for (uint8_t i = 0; i < 5; i++) {
		bytes[0] = (uint8_t)('0' + i);
		if (rpc_call_send_latest(call, bytes, sizeof bytes, &e) < 0) {
			rpc_call_fail(call, &e);
			return;
		}
	}
	rpc_call_finish(call, RPC_OK, NULL);
}

static void send_and_hold(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct pair *p = arg;
	struct hm_err e = { 0 };

	note_call(p, "Send", msg, n);
	rpc_call_set_data(call, name_send);
	p->held = call;
	if (rpc_call_send(call, msg, n, &e) < 0) {
		p->held = NULL;
		rpc_call_fail(call, &e);
	}
}

const struct rpc_method pair_methods[PAIR_METHODS] = {
	{ "/t.T/Echo", echo, on_gone }, { "/t.T/Three", three, on_gone },   { "/t.T/Fail", fail, on_gone },
	{ "/t.T/Hold", hold, on_gone }, { "/t.T/Latest", latest, on_gone }, { "/t.T/Send", send_and_hold, on_gone },
};

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct pair *p = arg;

	str_addf(&p->log, "message %zu %.*s;", n, (int)HM_MIN(n, (size_t)16),
		 n > 0 && msg[n > 1 ? 1 : 0] >= 32 ? (const char *)msg : "");
	if (p->cancel_on_message)
		rpc_request_cancel(p->request);
}

static void on_done(void *arg, int status, const char *text)
{
	struct pair *p = arg;

	str_addf(&p->log, "done %s %s;", rpc_status_name(status), text);
}

const struct rpc_reply pair_reply = { on_message, on_done, NULL };

static struct rpc_service services[1];

int pair_init(struct pair *p, size_t step, struct hm_err *e)
{
	*p = (struct pair) { .step = step, .now_ms = 1000 };
	services[0] = (struct rpc_service) { pair_methods, PAIR_METHODS, p };
	if (rpc_conn_new_server(&services[0], p->now_ms, &p->server, e) < 0 ||
	    rpc_conn_new_client(p->now_ms, &p->client, e) < 0) {
		pair_fini(p);
		return -1;
	}
	return 0;
}

void pair_fini(struct pair *p)
{
	if (p->client != NULL)
		rpc_conn_lost(p->client);
	if (p->server != NULL)
		rpc_conn_lost(p->server);
	rpc_conn_free(HM_STEAL(p->client));
	rpc_conn_free(HM_STEAL(p->server));
	str_fini(&p->log);
	str_fini(&p->to_server);
}

static bool hand_over(struct pair *p, struct rpc_conn *from, struct rpc_conn *to, bool *moved)
{
	uint8_t buf[65536];
	size_t n = rpc_conn_pull(from, buf, HM_MIN(p->step, sizeof buf));

	if (n == 0)
		return true;
	*moved = true;
	if (p->record && to == p->server)
		str_add_n(&p->to_server, buf, n);
	return rpc_conn_feed(to, buf, n, p->now_ms) == 0;
}

bool pair_run(struct pair *p)
{
	bool moved = true;

	while (moved) {
		moved = false;
		if (!hand_over(p, p->client, p->server, &moved) || !hand_over(p, p->server, p->client, &moved))
			return false;
	}
	return true;
}

int pair_call(struct pair *p, const char *path, const char *text, uint64_t timeout_ms, struct hm_err *e)
{
	struct rpc_reply reply = pair_reply;

	reply.arg = p;
	return rpc_conn_call(p->client, p->now_ms, path, (const uint8_t *)text, strlen(text), timeout_ms, &reply,
			     &p->request, e);
}

void drain(struct rpc_conn *c)
{
	uint8_t buf[4096];

	while (rpc_conn_pull(c, buf, sizeof buf) > 0)
		continue;
}
