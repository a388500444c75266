/* A gRPC server for the tests: each method shows one thing that a server can do. Requests are text.
 *
 *     rpc_echo_server SOCKET     prints "ready", ends at SIGTERM */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cursor.h"
#include "io/loop.h"
#include "rpc/server.h"

struct program {
	struct loop *loop;
	struct rpc_server *server;
	uint64_t calls, gone;
};

/* A call that goes on: answers or sends by its timer. */
struct job {
	struct program *program;
	struct rpc_call *call;
	struct loop_timer *timer;
	uint64_t left, bytes, interval_ms; /* of a watch; left 0: a sleep */
	uint64_t sent;
};

static void job_free(struct job *j)
{
	loop_timer_free(j->timer);
	free(j);
}

static void on_gone(struct rpc_call *call, void *arg)
{
	struct program *p = arg;

	p->gone++;
	job_free(rpc_call_data(call));
}

static struct job *job_new(struct program *p, struct rpc_call *call, void (*cb)(void *arg))
{
	struct job *j = calloc(1, sizeof *j);
	struct hm_err e;

	if (j == NULL)
		return NULL;
	j->program = p;
	j->call = call;
	if (loop_timer_new(p->loop, cb, j, &j->timer, &e) < 0) {
		free(j);
		return NULL;
	}
	rpc_call_set_data(call, j);
	return j;
}

/* The numbers that a request's text starts with, each followed by a space or the end. */
static void numbers(const uint8_t *msg, size_t n, uint64_t *out, size_t count)
{
	struct cur c = cur_of((const char *)msg, n);

	for (size_t i = 0; i < count; i++) {
		bool last = memchr(c.p, ' ', (size_t)(c.end - c.p)) == NULL;
		struct piece text = last ? cur_rest(&c) : cur_until(&c, ' ');

		if (!piece_u64(text, UINT32_MAX, &out[i]))
			out[i] = 0;
	}
}

static void echo(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	((struct program *)arg)->calls++;
	rpc_call_reply(call, msg, n);
}

/* The request's size, so that a large request needs no large answer. */
static void size(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	char text[24];

	(void)msg, (void)arg;
	rpc_call_reply(call, (const uint8_t *)text, (size_t)snprintf(text, sizeof text, "%zu", n));
}

static uint8_t *pattern(size_t n, uint64_t seed)
{
	uint8_t *bytes = malloc(n + 1);

	for (size_t i = 0; bytes != NULL && i < n; i++)
		bytes[i] = (uint8_t)(seed + i % 251);
	return bytes;
}

/* "N": an answer of so many bytes. */
static void big(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	uint64_t bytes;
	uint8_t *answer;

	(void)arg;
	numbers(msg, n, &bytes, 1);
	answer = pattern(bytes, 0);
	rpc_call_reply(call, answer, bytes);
	free(answer);
}

/* "N BYTES": so many messages of that size, at once. */
static void stream(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	uint64_t number[2];
	struct hm_err e;

	(void)arg;
	numbers(msg, n, number, 2);
	for (uint64_t i = 0; i < number[0]; i++) {
		uint8_t *bytes = pattern(number[1], i);
		int r = rpc_call_send(call, bytes, number[1], &e);

		free(bytes);
		if (r < 0) {
			rpc_call_fail(call, &e);
			return;
		}
	}
	rpc_call_finish(call, RPC_OK, NULL);
}

/* "CODE TEXT" */
static void fail(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	char text[2048] = "";
	uint64_t code;
	const uint8_t *space = memchr(msg, ' ', n);

	(void)arg;
	numbers(msg, n, &code, 1);
	if (space != NULL &&
	    !piece_copy((struct piece) { (const char *)space + 1, n - (size_t)(space + 1 - msg) }, text, sizeof text))
		text[0] = '\0';
	rpc_call_finish(call, (int)code, text);
}

static void on_wake(void *arg)
{
	struct job *j = arg;

	rpc_call_reply(j->call, (const uint8_t *)"woke", 4);
	job_free(j);
}

/* "MS": answers after that time. */
static void sleep_for(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct job *j = job_new(arg, call, on_wake);
	uint64_t ms;

	numbers(msg, n, &ms, 1);
	if (j == NULL)
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		loop_timer_arm(j->timer, ms);
}

static void on_snapshot(void *arg)
{
	struct job *j = arg;
	uint8_t *bytes = pattern(j->bytes, j->sent++);
	struct hm_err e;

	if (rpc_call_send_latest(j->call, bytes, j->bytes, &e) < 0)
		fprintf(stderr, "snapshot: %s\n", e.msg);
	free(bytes);
	if (--j->left > 0)
		loop_timer_arm(j->timer, j->interval_ms);
}

/* "N BYTES MS": so many snapshots, one each MS; then the stream stays open. */
static void watch(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct job *j = job_new(arg, call, on_snapshot);
	uint64_t number[3];

	if (j == NULL) {
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	numbers(msg, n, number, 3);
	j->left = number[0];
	j->bytes = number[1];
	j->interval_ms = number[2];
	on_snapshot(j);
}

static void stats(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct program *p = arg;
	char text[128];
	int len = snprintf(text, sizeof text, "connections=%zu calls=%llu gone=%llu", rpc_server_connections(p->server),
			   (unsigned long long)p->calls, (unsigned long long)p->gone);

	(void)msg, (void)n;
	rpc_call_reply(call, (const uint8_t *)text, (size_t)len);
}

static const struct rpc_method methods[] = {
	{ "/test.Echo/Echo", echo, NULL },          { "/test.Echo/Big", big, NULL },
	{ "/test.Echo/Stream", stream, NULL },      { "/test.Echo/Fail", fail, NULL },
	{ "/test.Echo/Sleep", sleep_for, on_gone }, { "/test.Echo/Watch", watch, on_gone },
	{ "/test.Echo/Stats", stats, NULL },        { "/test.Echo/Size", size, NULL },
};

static void on_term(void *arg)
{
	struct program *p = arg;

	rpc_server_free(p->server);
	p->server = NULL;
	loop_stop(p->loop);
}

int main(int argc, char **argv)
{
	struct program p = { 0 };
	struct loop_signal *term = NULL;
	struct hm_err e = { 0 };
	int r = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: rpc_echo_server SOCKET\n");
		return 2;
	}
	if (loop_new(&p.loop, &e) == 0 && loop_signal_new(p.loop, SIGTERM, on_term, &p, &term, &e) == 0 &&
	    rpc_server_new(p.loop, argv[1], methods, HM_COUNT(methods), &p, &p.server, &e) == 0) {
		printf("ready\n");
		fflush(stdout);
		r = loop_run(p.loop, &e) < 0;
	}
	if (r != 0)
		fprintf(stderr, "rpc_echo_server: %s\n", e.msg);
	rpc_server_free(p.server);
	loop_signal_free(term);
	loop_free(p.loop);
	return r;
}
