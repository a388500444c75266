/* gRPC client on a unix socket, in the one loop. Unary calls and server streams. */
#ifndef HM_RPC_CLIENT_H
#define HM_RPC_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "rpc/status.h"

struct rpc_client;
struct rpc_request;

/* Connects at once (a unix connect ends or fails immediately): -HM_ENOTFOUND no such socket, -HM_EAGAIN refused or
 * backlog full: try again soon. */
int rpc_client_new(struct loop *l, const char *path, struct rpc_client **out, struct hm_err *e) HM_MUST_USE;
/* Pending requests end CANCELLED, their callbacks run before this returns. Allowed inside a callback, those that it
 * runs itself included (where it then does nothing). */
void rpc_client_free(struct rpc_client *c);
HM_DEFINE_AUTO(rpc_client, rpc_client_free);

/* Called for each message of the answer (unary: once at most), then `done` exactly once. */
struct rpc_reply {
	void (*message)(void *arg, const uint8_t *msg, size_t n); /* bytes valid until it returns; may be NULL */
	void (*done)(void *arg, int status, const char *text);    /* enum rpc_status; text "" if none */
	void *arg;
};

/* timeout_ms 0: no deadline. *out (may be NULL) can be cancelled until done was called. On failure done is not called:
 * -HM_EAGAIN the connection has ended or is ending (make a new client), -HM_ELIMIT the message is above
 * RPC_MAX_SEND_BYTES or too much waits already, -HM_ENOMEM. */
int rpc_client_call(struct rpc_client *c, const char *path, const uint8_t *msg, size_t n, uint64_t timeout_ms,
		    const struct rpc_reply *reply, struct rpc_request **out, struct hm_err *e) HM_MUST_USE;
/* done is called with CANCELLED before this returns. */
void rpc_request_cancel(struct rpc_request *r);

#endif
