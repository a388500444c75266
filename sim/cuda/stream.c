#include "sim/cuda/stream.h"

#include <stdlib.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/pool.h"

/* The default stream of the calling thread: the ticket of its last work on each card. */
static _Thread_local uint64_t thread_tickets[SIM_MAX_CARDS];
static _Thread_local struct cu_capture_slot thread_slots[SIM_MAX_CARDS];

CUresult cu_stream_get(struct CUctx_st *ctx, CUstream stream, bool per_thread, struct cu_stream_ref *out)
{
	*out = (struct cu_stream_ref) { .ctx = ctx };
	if (stream == CU_STREAM_PER_THREAD || (stream == NULL && per_thread)) {
		out->last_ticket = &thread_tickets[cu.devices[ctx->device].card];
		out->slot = &thread_slots[cu.devices[ctx->device].card];
		return CUDA_SUCCESS;
	}
	if (stream == NULL || stream == CU_STREAM_LEGACY) {
		out->last_ticket = &ctx->last_ticket;
		return CUDA_SUCCESS;
	}
	if (!cu_handle_is(stream, CU_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = (struct cu_stream_ref) {
		.ctx = stream->ctx, .last_ticket = &stream->last_ticket, .stream = stream, .slot = &stream->slot
	};
	return cu_context_usable(stream->ctx);
}

CUresult cu_stream_submit(const struct cu_stream_ref *s, uint64_t busy_ns, uint64_t meets)
{
	uint64_t ticket;
	CUresult rc = cu_code(sim_work_submit_meeting(cu.devices[s->ctx->device].card, meets, busy_ns, &ticket));

	if (rc != CUDA_SUCCESS) {
		s->ctx->sticky = rc;
		return rc;
	}
	s->ctx->last_ticket = ticket;
	*s->last_ticket = ticket;
	return CUDA_SUCCESS;
}

uint64_t cu_stream_ticket(const struct cu_stream_ref *s)
{
	return *s->last_ticket;
}

static void stream_free(CUstream stream)
{
	cu_capture_stream_gone(&stream->slot);
	cu_handle_remove(stream);
	link_remove(&stream->link);
	free(stream);
}

void cu_streams_drop(struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&ctx->streams, it)
		stream_free(HM_CONTAINER(it, struct CUstream_st, link));
}

CUresult cu_stream_new(struct CUctx_st *ctx, unsigned flags, int priority, CUstream *out)
{
	static uint64_t last_id = 2; /* 1 and 2 are the default streams */
	struct CUstream_st *stream = calloc(1, sizeof *stream);

	if (stream == NULL || !cu_handle_add(stream, CU_STREAM)) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->ctx = ctx;
	stream->id = ++last_id;
	stream->flags = flags;
	stream->priority = priority > 0 ? 0 : HM_MAX(priority, -5); /* clamped, as the driver does */
	link_append(&ctx->streams, &stream->link);
	*out = stream;
	return CUDA_SUCCESS;
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || flags > CU_STREAM_NON_BLOCKING)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(cu_stream_new(ctx, flags, priority, out));
}

CU_EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
	return create(out, flags, 0);
}

CU_EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
	return create(out, flags, priority);
}

/* Returns at once; what was queued runs on. */
static CUresult destroy(CUstream stream)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(stream, CU_STREAM))
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	stream_free(stream);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuStreamDestroy(CUstream stream)
{
	return destroy(stream);
}

CU_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	return destroy(stream);
}

/* Takes the lock and looks a stream argument up. */
static CUresult enter_stream(CUstream stream, bool per_thread, struct cu_stream_ref *out)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_stream_get(ctx, stream, per_thread, out);
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

static CUresult query(CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_capture_may_wait(&s);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	uint64_t ticket = cu_stream_ticket(&s);
	bool done = ticket == 0 || sim_work_done(cu.devices[s.ctx->device].card, ticket);

	return cu_leave(done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CU_EXPORT CUresult cuStreamQuery(CUstream stream)
{
	return query(stream, false);
}

CU_EXPORT CUresult cuStreamQuery_ptsz(CUstream stream)
{
	return query(stream, true);
}

static CUresult synchronize(CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	unsigned device = s.ctx->device;

	rc = cu_capture_may_wait(&s);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	rc = cu_wait(s.ctx, cu_stream_ticket(&s));
	cu_pools_release(device);
	return cu_leave(rc);
}

CU_EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	return synchronize(stream, false);
}

CU_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	return synchronize(stream, true);
}

enum stream_fact { FACT_PRIORITY, FACT_FLAGS, FACT_CONTEXT, FACT_DEVICE, FACT_ID };

static CUresult fact(CUstream stream, bool per_thread, enum stream_fact which, void *out)
{
	struct cu_stream_ref s;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	bool thread = s.stream == NULL && s.last_ticket != &s.ctx->last_ticket;

	switch (which) {
	case FACT_PRIORITY: *(int *)out = s.stream != NULL ? s.stream->priority : 0; break;
	case FACT_FLAGS: *(unsigned *)out = s.stream != NULL ? s.stream->flags : CU_STREAM_DEFAULT; break;
	case FACT_CONTEXT: *(CUcontext *)out = s.ctx; break;
	case FACT_DEVICE: *(CUdevice *)out = (CUdevice)s.ctx->device; break;
	case FACT_ID: *(unsigned long long *)out = s.stream != NULL ? s.stream->id : (thread ? 2 : 1); break;
	}
	return cu_leave(CUDA_SUCCESS);
}

#define FACT(name, type, which)                                                                                        \
	CU_EXPORT CUresult name(CUstream stream, type *out)                                                            \
	{                                                                                                              \
		return fact(stream, false, which, out);                                                                \
	}                                                                                                              \
	CU_EXPORT CUresult name##_ptsz(CUstream stream, type *out)                                                     \
	{                                                                                                              \
		return fact(stream, true, which, out);                                                                 \
	}
FACT(cuStreamGetPriority, int, FACT_PRIORITY)
FACT(cuStreamGetFlags, unsigned, FACT_FLAGS)
FACT(cuStreamGetCtx, CUcontext, FACT_CONTEXT)
FACT(cuStreamGetDevice, CUdevice, FACT_DEVICE)
FACT(cuStreamGetId, unsigned long long, FACT_ID)
