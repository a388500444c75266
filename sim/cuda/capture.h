/* Stream capture: work given to a capturing stream becomes nodes of a graph, and what cannot be captured is refused and
 * spoils the capture. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_CAPTURE_H
#define HM_SIM_CUDA_CAPTURE_H

#include "sim/cuda/graph.h"
#include "sim/cuda/stream.h"

/* A stream that takes part in a capture: what its next node depends on. The capture's to free. */
struct cu_member {
	struct link link; /* on its capture's list */
	struct CUctx_st *ctx;
	bool blocking; /* work on the legacy stream would wait for it */
	CUgraphNode *deps;
	size_t count, room;
};

struct cu_capture {
	struct link link; /* on the list of all */
	uint64_t id;      /* never reused */
	CUstreamCaptureMode mode;
	const void *thread; /* that began it */
	bool spoilt;
	bool own_graph; /* made for it, not given by the program */
	CUgraph graph;
	struct link members;
	struct cu_member *origin;
};

/* capture NULL: the stream is not capturing. */
struct cu_captured {
	struct cu_capture *capture;
	struct cu_member *member;
};

/* Before work is given to a stream. INVALIDATED where its capture is spoilt; IMPLICIT on the legacy stream while a
 * blocking stream of its context captures, which spoils that capture. */
CUresult cu_captured_get(const struct cu_stream_ref *s, struct cu_captured *out);
/* The same without any effect: for questions. A spoilt capture is an answer. */
CUresult cu_captured_look(const struct cu_stream_ref *s, struct cu_captured *out);
/* Adds a node behind the stream's last. Takes what `work` owns. node may be NULL. */
CUresult cu_captured_add(struct cu_captured *c, struct cu_work *take_work, CUgraphNode *node);
/* A call that no capturing stream can take: the capture is spoilt, and the answer UNSUPPORTED. */
CUresult cu_captured_refuse(const struct cu_captured *c);

/* The same for a call on a stream: not where it is capturing. */
CUresult cu_capture_refuses(const struct cu_stream_ref *s);

/* A call that may not happen while the thread or another one captures (cuThreadExchangeStreamCaptureMode says when):
 * UNSUPPORTED, and what forbids it is spoilt. */
CUresult cu_capture_guard(void);
/* cu_enter_context and cu_capture_guard; the context is the one that owns what is allocated. */
CUresult cu_enter_unsafe(struct CUctx_st **out) HM_MUST_USE;
/* Before a call waits for a stream, or asks whether it is done: IMPLICIT, or not while it captures, or the guard. */
CUresult cu_capture_may_wait(const struct cu_stream_ref *s);

/* An event's memory of the capture it was recorded in. */
struct cu_mark {
	uint64_t capture_id; /* 0: recorded outside */
	CUgraphNode *deps;
	size_t count;
};
CUresult cu_mark_set(struct cu_mark *mark, const struct cu_captured *c); /* c->capture NULL: outside */
void cu_mark_clear(struct cu_mark *mark);
/* The stream waits for the event: it joins the capture, or merges what the event stands for. */
CUresult cu_mark_wait(const struct cu_mark *mark, const struct cu_stream_ref *s, bool *captured);

void cu_capture_stream_gone(const struct cu_capture_slot *slot);

#endif
