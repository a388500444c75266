/* Streams and events. One card has one compute engine, and what a process submits to it runs in order, so that a stream
 * is no more than the ticket of its last work. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_STREAM_H
#define HM_SIM_CUDA_STREAM_H

#include "sim/cuda/state.h"

struct cu_member; /* capture.h */

/* A stream's part in a capture; one that has ended is no longer found by its number. */
struct cu_capture_slot {
	uint64_t capture_id; /* 0: none */
	struct cu_member *member;
};

struct CUstream_st {
	struct link link; /* on its context's list */
	struct CUctx_st *ctx;
	uint64_t id;
	unsigned flags;
	int priority;
	uint64_t last_ticket;
	struct cu_capture_slot slot;
};

/* A stream argument, looked up: a created stream, or one of the two default ones. */
struct cu_stream_ref {
	struct CUctx_st *ctx;
	uint64_t *last_ticket;
	CUstream stream;              /* NULL: a default one */
	struct cu_capture_slot *slot; /* NULL: the legacy stream, which never captures */
};

CUresult cu_stream_new(struct CUctx_st *ctx, unsigned flags, int priority, CUstream *out);

/* NULL means the default stream of the call's variant (`per_thread`: _ptsz and _ptds). INVALID_HANDLE where there is no
 * such stream; a stream of another context than the current is fine, and its context is the ref's. */
CUresult cu_stream_get(struct CUctx_st *ctx, CUstream stream, bool per_thread, struct cu_stream_ref *out);

/* Queues busy_ns on the card behind the stream's work. meets: a kernel that waits for another (0: none). */
CUresult cu_stream_submit(const struct cu_stream_ref *s, uint64_t busy_ns, uint64_t meets);

/* What the stream must wait for: its own work; the legacy default stream, that of all the context's streams. */
uint64_t cu_stream_ticket(const struct cu_stream_ref *s);

void cu_streams_drop(struct CUctx_st *ctx); /* frees all streams, or events, of a dying context */
void cu_events_drop(struct CUctx_st *ctx);

#endif
