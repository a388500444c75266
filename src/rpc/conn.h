/* The engine of one gRPC connection, without I/O: bytes in, bytes out, events by callbacks, the time passed in. It owns
 * no file descriptor and reads no clock. peer.h gives it a socket; tests give it another engine.
 *
 * User callbacks (methods, replies) run inside feed, pull, tick, close and lost; they may do anything but these and
 * rpc_conn_free. What they queue is fetched by the next pull. */
#ifndef HM_RPC_CONN_H
#define HM_RPC_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "rpc/client.h"
#include "rpc/server.h"

struct rpc_conn;

/* What a server answers; borrowed until rpc_conn_close or rpc_conn_lost returned. */
struct rpc_service {
	const struct rpc_method *methods;
	size_t count;
	void *arg;
};

int rpc_conn_new_server(const struct rpc_service *service, uint64_t now_ms, struct rpc_conn **out,
			struct hm_err *e) HM_MUST_USE;
int rpc_conn_new_client(uint64_t now_ms, struct rpc_conn **out, struct hm_err *e) HM_MUST_USE;
void rpc_conn_free(struct rpc_conn *c); /* no callbacks: close or lost come before */
HM_DEFINE_AUTO(rpc_conn, rpc_conn_free);

/* Called when a call or request queued something outside feed, pull and tick, or moved the next deadline. It must not
 * pull at once: the caller is in the middle of something. */
void rpc_conn_on_output(struct rpc_conn *c, void (*cb)(void *arg), void *arg);

/* Bytes from the peer. -HM_EPROTO or -HM_ENOMEM: the connection is over, rpc_conn_lost comes next. */
int rpc_conn_feed(struct rpc_conn *c, const uint8_t *in, size_t n, uint64_t now_ms) HM_MUST_USE;
/* Up to cap bytes for the peer; 0: nothing now. */
size_t rpc_conn_pull(struct rpc_conn *c, uint8_t *out, size_t cap);
/* Ends what is due: deadlines, a handshake that does not come. */
void rpc_conn_tick(struct rpc_conn *c, uint64_t now_ms);
/* When tick is to be called next; UINT64_MAX: never. May be earlier than needed. */
uint64_t rpc_conn_next_tick_ms(const struct rpc_conn *c);

/* Nothing more will come or go: lost, then free. */
bool rpc_conn_is_over(const struct rpc_conn *c);
/* The peer has sent its SETTINGS. */
bool rpc_conn_is_greeted(const struct rpc_conn *c);
size_t rpc_conn_open_streams(const struct rpc_conn *c);

/* We end it: unfinished calls are `gone` for the handler and UNAVAILABLE for the peer, pending requests are done with
 * CANCELLED, GOAWAY is queued. Pull what there is, then free. No callback comes afterwards. */
void rpc_conn_close(struct rpc_conn *c);
/* The peer or the socket ended it: unfinished calls are `gone`, pending requests are done with UNAVAILABLE. */
void rpc_conn_lost(struct rpc_conn *c);

/* As rpc_client_call. -HM_EAGAIN where the connection is ending. */
int rpc_conn_call(struct rpc_conn *c, uint64_t now_ms, const char *path, const uint8_t *msg, size_t n,
		  uint64_t timeout_ms, const struct rpc_reply *reply, struct rpc_request **out,
		  struct hm_err *e) HM_MUST_USE;

#endif
