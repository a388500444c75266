/* A gRPC client for the tests: one call, its messages and its end on stdout.
 *
 *     rpc_echo_client SOCKET METHOD TEXT [TIMEOUT_MS [CANCEL_AFTER_MESSAGES]]
 *
 * TEXT "@N" stands for N bytes. Prints "message N first-bytes" a line, then "status CODE text". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/num.h"
#include "io/loop.h"
#include "rpc/client.h"

struct program {
	struct loop *loop;
	struct rpc_request *request;
	uint64_t messages, cancel_after;
};

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct program *p = arg;

	printf("message %zu %.*s\n", n, (int)HM_MIN(n, (size_t)32), (const char *)msg);
	if (++p->messages == p->cancel_after)
		rpc_request_cancel(p->request);
}

static void on_done(void *arg, int status, const char *text)
{
	struct program *p = arg;

	printf("status %d %s\n", status, text);
	loop_stop(p->loop);
}

static char *request_text(const char *arg, size_t *n)
{
	uint64_t bytes;
	char *text;

	if (arg[0] != '@' || !num_u64_str(arg + 1, 1u << 30, &bytes)) {
		*n = strlen(arg);
		return strdup(arg);
	}
	*n = bytes;
	text = malloc(bytes + 1);
	if (text != NULL)
		memset(text, 'x', bytes + 1);
	return text;
}

int main(int argc, char **argv)
{
	struct program p = { 0 };
	const struct rpc_reply reply = { on_message, on_done, &p };
	struct rpc_client *client = NULL;
	struct hm_err e = { 0 };
	uint64_t timeout_ms = 0;
	char *text;
	size_t n;
	int r = 1;

	if (argc < 4 || (argc > 4 && !num_u64_str(argv[4], UINT32_MAX, &timeout_ms)) ||
	    (argc > 5 && !num_u64_str(argv[5], UINT32_MAX, &p.cancel_after))) {
		fprintf(stderr, "usage: rpc_echo_client SOCKET METHOD TEXT [TIMEOUT_MS [CANCEL_AFTER]]\n");
		return 2;
	}
	text = request_text(argv[3], &n);
	if (text != NULL && loop_new(&p.loop, &e) == 0 && rpc_client_new(p.loop, argv[1], &client, &e) == 0 &&
	    rpc_client_call(client, argv[2], (const uint8_t *)text, n, timeout_ms, &reply, &p.request, &e) == 0)
		r = loop_run(p.loop, &e) < 0;
	if (r != 0)
		printf("error %d %s\n", e.code, e.msg);
	rpc_client_free(client);
	loop_free(p.loop);
	free(text);
	return r;
}
