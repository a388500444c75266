/* One connected socket with its engine, in the loop: reads, writes, keeps the engine's time. */
#ifndef HM_RPC_PEER_H
#define HM_RPC_PEER_H

#include "core/cleanup.h"
#include "core/link.h"
#include "io/loop.h"
#include "rpc/conn.h"

struct rpc_peer;

struct rpc_peer_owner {
	struct link *list;         /* where the peer stands while it lives, newest last; or NULL */
	void (*closed)(void *arg); /* the peer ended by itself and is about to be freed; or NULL */
	void *arg;
};

/* Takes fd (connected, non-blocking) and conn, also when it fails. */
int rpc_peer_new(struct loop *l, int fd, struct rpc_conn *conn, const struct rpc_peer_owner *owner,
		 struct rpc_peer **out, struct hm_err *e) HM_MUST_USE;
/* rpc_conn_close, a last write as far as the socket takes it, close. Inside a callback of this peer the writing and
 * closing happen when that callback has returned; the owner hears nothing more in any case. */
void rpc_peer_free(struct rpc_peer *p);

struct rpc_peer *rpc_peer_of(struct link *on_list);
struct rpc_conn *rpc_peer_conn(struct rpc_peer *p);

#endif
