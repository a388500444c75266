/* What conn.c, call.c and request.c share: the bodies of a connection and of a stream on it. */
#ifndef HM_RPC_STREAM_H
#define HM_RPC_STREAM_H

#include <nghttp2/nghttp2.h>

#include "base/rate.h"
#include "core/cursor.h"
#include "core/link.h"
#include "rpc/conn.h"
#include "rpc/grpc_frame.h"
#include "rpc/send_queue.h"

#define RPC_NEVER UINT64_MAX

struct rpc_conn {
	nghttp2_session *session;
	const struct rpc_side *side;
	const struct rpc_service *service; /* server */
	struct link streams;               /* all that nghttp2 has open, oldest first */
	uint64_t now_ms;                   /* of the last feed, tick or call */
	uint64_t hello_by_ms;              /* RPC_NEVER once SETTINGS came */
	uint64_t next_deadline_ms;         /* not later than the earliest deadline of a stream */
	struct rate resets;
	size_t buffered;      /* bytes that its streams hold */
	const uint8_t *chunk; /* nghttp2's, valid until the next mem_send */
	size_t chunk_left;
	bool greeted;
	bool failed;  /* nghttp2 gave up: only rpc_conn_lost and rpc_conn_free may follow */
	bool closing; /* no new calls, no more callbacks for old ones */
	bool goaway;  /* the peer will take no new requests */
	void (*on_output)(void *arg);
	void *on_output_arg;
};

/* The part that calls and requests have in common; they embed it as their first member. A stream lives until nghttp2
 * closes it (rpc_side.closed) or the connection is freed, longer than its user's handle. */
struct rpc_stream {
	struct link link;
	struct rpc_conn *conn;
	int32_t id;
	struct grpc_deframer in;
	struct send_queue out;
	uint64_t deadline_ms;
	size_t header_bytes; /* as HPACK counts: 32 more for each field */
	size_t charged;      /* its part of conn->buffered */
	bool remote_ended;
	bool local_ended; /* our END_STREAM is on its way */
	bool out_ended;   /* nothing more will be queued: END_STREAM or trailers behind the queue */
};

/* What a server and a client do differently. Called from inside nghttp2: they queue, they never pull. */
struct rpc_side {
	struct rpc_stream *(*open)(struct rpc_conn *c, int32_t id); /* the peer's request; NULL: refuse it */
	void (*header)(struct rpc_stream *s, struct piece name, struct piece value);
	void (*headers_end)(struct rpc_stream *s);
	void (*data)(struct rpc_stream *s, const uint8_t *bytes, size_t n);
	void (*remote_end)(struct rpc_stream *s);
	int (*out_end)(struct rpc_stream *s); /* the queue ran empty; >= 0: more flags for nghttp2 */
	void (*closed)(struct rpc_stream *s, uint32_t http2_error);
	void (*deadline)(struct rpc_stream *s);
	void (*shut)(struct rpc_stream *s); /* rpc_conn_close */
	void (*lost)(struct rpc_stream *s); /* rpc_conn_lost */
	void (*free)(struct rpc_stream *s); /* the memory; no callbacks */
};
extern const struct rpc_side rpc_server_side, rpc_client_side;

void rpc_stream_init(struct rpc_stream *s, struct rpc_conn *c, int32_t id, size_t max_bytes);
void rpc_stream_fini(struct rpc_stream *s);
/* To be called after the stream's buffers changed. */
void rpc_stream_account(struct rpc_stream *s);
/* Whether this connection may hold n more bytes: to send, and received (what fits into the stream's buffer is free). */
bool rpc_stream_may_send(const struct rpc_stream *s, size_t n);
bool rpc_stream_may_receive(const struct rpc_stream *s, size_t n);
void rpc_stream_set_deadline(struct rpc_stream *s, uint64_t at_ms);
/* Lets nghttp2 ask for data again. */
void rpc_stream_resume(struct rpc_stream *s);
void rpc_stream_reset(struct rpc_stream *s, uint32_t http2_error);
nghttp2_data_provider rpc_stream_provider(struct rpc_stream *s);

/* Notes what a nghttp2 function returned: a fatal error ends the connection. Returns r. */
int rpc_conn_note(struct rpc_conn *c, int r);
/* Something was queued: tells the owner. */
void rpc_conn_poke(struct rpc_conn *c);

#define RPC_NV(name, value, value_n)                                                                                   \
	{                                                                                                              \
		(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1, value_n,                \
			NGHTTP2_NV_FLAG_NONE                                                                           \
	}
#define RPC_NV_TEXT(name, value) RPC_NV(name, value, strlen(value))

#endif
