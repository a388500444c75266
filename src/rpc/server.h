/* gRPC server on a unix socket, in the one loop. Handlers run in the loop's thread and answer at once or later. */
#ifndef HM_RPC_SERVER_H
#define HM_RPC_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "rpc/status.h"

struct rpc_server;
struct rpc_call; /* one call of a peer; dies with rpc_call_finish or with method->gone */

struct rpc_method {
	const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
	/* The whole request message has come; `msg` is valid until the handler returns. The handler finishes the call,
	 * now or later, exactly once. */
	void (*call)(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg);
	/* After `call` only: an unfinished call ended by the peer (cancel, deadline, lost connection) or by
	 * rpc_server_free: the call is dead when this returns. May be NULL. */
	void (*gone)(struct rpc_call *call, void *arg);
};

/* Listens on `path` (a stale socket file there is replaced; mode 0600; at most 107 bytes). `methods` is borrowed for
 * the server's life. */
int rpc_server_new(struct loop *l, const char *path, const struct rpc_method *methods, size_t count, void *arg,
		   struct rpc_server **out, struct hm_err *e) HM_MUST_USE;
/* Unfinished calls end UNAVAILABLE, GOAWAY, close; the socket file is removed if it is still ours (same inode). Allowed
 * inside a handler; `gone` of the unfinished calls, that one's too, runs before this returns. */
void rpc_server_free(struct rpc_server *s);
HM_DEFINE_AUTO(rpc_server, rpc_server_free);

/* True while the socket file at `path` is this server's own. */
int rpc_server_owns_socket(const struct rpc_server *s);
size_t rpc_server_connections(const struct rpc_server *s);

/* A message to the peer; the bytes are copied. -HM_ELIMIT above RPC_MAX_SEND_BYTES (nothing is sent, the message says
 * how many bytes it had), -HM_ENOMEM. */
int rpc_call_send(struct rpc_call *call, const uint8_t *msg, size_t n, struct hm_err *e) HM_MUST_USE;
/* As rpc_call_send, but drops messages of this call that were queued and not started: for whole snapshots. */
int rpc_call_send_latest(struct rpc_call *call, const uint8_t *msg, size_t n, struct hm_err *e) HM_MUST_USE;
/* Ends the call. `text` (any bytes up to 1 KiB, NULL for none) is percent-encoded on the wire. */
void rpc_call_finish(struct rpc_call *call, int status, const char *text);
/* rpc_call_send and rpc_call_finish(OK), or finish with the error's status and text. */
void rpc_call_reply(struct rpc_call *call, const uint8_t *msg, size_t n);
/* rpc_call_finish with rpc_status_of(e->code) and e->msg. */
void rpc_call_fail(struct rpc_call *call, const struct hm_err *e);

/* The caller's own pointer, NULL at first. */
void rpc_call_set_data(struct rpc_call *call, void *data);
void *rpc_call_data(const struct rpc_call *call);

#endif
