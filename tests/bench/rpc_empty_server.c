/* The floor that other figures are measured against: our gRPC server with a handler that does nothing.
 *
 *     rpc_empty_server SOCKET [METHOD [ANSWER_BYTES]]
 *
 * METHOD (default /bench.Empty/Call), as "/v1beta1.DevicePlugin/Allocate", takes any request; the answer is
 * ANSWER_BYTES (default 0) of zero. Prints "ready", ends at SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/num.h"
#include "io/loop.h"
#include "rpc/limits.h"
#include "rpc/server.h"

struct program {
	struct loop *loop;
	uint8_t *answer;
	uint64_t answer_bytes;
};

static void answer(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	const struct program *p = arg;

	(void)msg, (void)n;
	rpc_call_reply(call, p->answer, p->answer_bytes);
}

static void on_term(void *arg)
{
	loop_stop(((struct program *)arg)->loop);
}

static int serve(struct program *p, const char *path, const char *method, struct hm_err *e)
{
	const struct rpc_method methods[] = {
		{ "/bench.Empty/Call", answer, NULL },
		{ "/v1beta1.DevicePlugin/Allocate", answer, NULL },
		{ method, answer, NULL },
	};
	hm_auto(loop) *loop = NULL;
	hm_auto(loop_signal) *term = NULL;
	hm_auto(rpc_server) *server = NULL;

	if (loop_new(&loop, e) < 0 || loop_signal_new(loop, SIGTERM, on_term, p, &term, e) < 0 ||
	    rpc_server_new(loop, path, methods, HM_COUNT(methods), p, &server, e) < 0)
		return -1;
	p->loop = loop;
	printf("ready\n");
	fflush(stdout);
	return loop_run(loop, e);
}

int main(int argc, char **argv)
{
	struct program p = { 0 };
	struct hm_err e = { 0 };
	int r;

	if (argc < 2 || argc > 4 || (argc > 3 && !num_u64_str(argv[3], RPC_MAX_SEND_BYTES, &p.answer_bytes))) {
		fprintf(stderr, "usage: rpc_empty_server SOCKET [METHOD [ANSWER_BYTES]]\n");
		return 2;
	}
	p.answer = calloc(1, p.answer_bytes + 1);
	if (p.answer == NULL)
		return 1;
	r = serve(&p, argv[1], argc > 2 ? argv[2] : "", &e);
	if (r < 0)
		fprintf(stderr, "rpc_empty_server: %s\n", e.msg);
	free(p.answer);
	return r < 0;
}
