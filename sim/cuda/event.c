#include <stdlib.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

struct CUevent_st {
	struct link link; /* on its context's list */
	struct CUctx_st *ctx;
	unsigned flags;
	bool recorded;
	uint64_t ticket;     /* the stream's last work when it was recorded; 0: nothing was queued */
	struct cu_mark mark; /* recorded in a capture */
	uint64_t record_ns;  /* the node's clock then: the event is never earlier */
};

static void event_free(CUevent event)
{
	cu_mark_clear(&event->mark);
	cu_handle_remove(event);
	link_remove(&event->link);
	free(event);
}

void cu_events_drop(struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&ctx->events, it)
		event_free(HM_CONTAINER(it, struct CUevent_st, link));
}

static unsigned card_of(CUevent event)
{
	return cu.devices[event->ctx->device].card;
}

/* Takes the lock and looks an event up. */
static CUresult enter_event(CUevent event)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_handle_is(event, CU_EVENT) ? cu_context_usable(event->ctx) : CUDA_ERROR_INVALID_HANDLE;
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

CU_EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	bool interprocess = (flags & CU_EVENT_INTERPROCESS) != 0;

	if (out == NULL || flags > 7 || (interprocess && (flags & CU_EVENT_DISABLE_TIMING) == 0))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct CUevent_st *event = calloc(1, sizeof *event);

	if (event == NULL || !cu_handle_add(event, CU_EVENT)) {
		free(event);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	event->ctx = ctx;
	event->flags = flags;
	link_append(&ctx->events, &event->link);
	*out = event;
	return cu_leave(CUDA_SUCCESS);
}

static CUresult destroy(CUevent event)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(event, CU_EVENT))
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	event_free(event);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuEventDestroy(CUevent event)
{
	return destroy(event);
}

CU_EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	return destroy(event);
}

static CUresult record(CUevent event, CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	CUresult rc = enter_event(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_stream_get(event->ctx, stream, per_thread, &s);
	if (rc == CUDA_SUCCESS && !cu_context_shares(s.ctx, event->ctx))
		rc = CUDA_ERROR_INVALID_HANDLE;
	struct cu_captured captured = { NULL, NULL };

	if (rc == CUDA_SUCCESS)
		rc = cu_captured_get(&s, &captured);
	if (rc == CUDA_SUCCESS)
		rc = cu_mark_set(&event->mark, &captured);
	if (rc != CUDA_SUCCESS || captured.capture != NULL)
		return cu_leave(rc);
	event->recorded = true;
	event->ticket = cu_stream_ticket(&s);
	event->record_ns = sim_now_ns();
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return record(event, stream, false);
}

CU_EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return record(event, stream, true);
}

CU_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(event, stream, false);
}

CU_EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags)
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(event, stream, true);
}

/* An event that was never recorded counts as done. */
static bool done(CUevent event)
{
	return !event->recorded || event->ticket == 0 || sim_work_done(card_of(event), event->ticket);
}

/* Takes the lock and looks an event up that is to be waited for, or asked whether it is done. */
static CUresult enter_outside(CUevent event)
{
	CUresult rc = enter_event(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = event->mark.capture_id != 0 ? CUDA_ERROR_CAPTURED_EVENT : cu_capture_guard();
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

CU_EXPORT CUresult cuEventQuery(CUevent event)
{
	CUresult rc = enter_outside(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CU_EXPORT CUresult cuEventSynchronize(CUevent event)
{
	CUresult rc = enter_outside(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	unsigned device = event->ctx->device;

	rc = cu_wait(event->ctx, event->recorded ? event->ticket : 0);
	cu_pools_release(device);
	return cu_leave(rc);
}

/* The later of when it was recorded and when the work before it ended. */
static uint64_t time_of(CUevent event)
{
	uint64_t end;

	if (event->ticket == 0 || sim_work_end_ns(card_of(event), event->ticket, &end) != SIM_OK)
		return event->record_ns;
	return HM_MAX(end, event->record_ns);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	if (ms == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_event(start);

	if (rc != CUDA_SUCCESS)
		return rc;
	unsigned untimed = CU_EVENT_DISABLE_TIMING;

	if (!cu_handle_is(end, CU_EVENT) || end->ctx != start->ctx || !start->recorded || !end->recorded ||
	    ((start->flags | end->flags) & untimed) != 0)
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	if (start->mark.capture_id != 0 || end->mark.capture_id != 0)
		return cu_leave(CUDA_ERROR_CAPTURED_EVENT);
	if (!done(start) || !done(end))
		return cu_leave(CUDA_ERROR_NOT_READY);
	*ms = (float)((double)((int64_t)time_of(end) - (int64_t)time_of(start)) / 1e6);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return elapsed(ms, start, end);
}

CU_EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return elapsed(ms, start, end);
}

/* All of a process's work on a card runs in order already; an event of another card is waited for by the host. */
static CUresult wait_event(CUstream stream, CUevent event, unsigned flags, bool per_thread)
{
	struct cu_stream_ref s;

	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_event(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct CUctx_st *ctx;

	rc = cu_context_get(NULL, &ctx);
	if (rc == CUDA_SUCCESS)
		rc = cu_stream_get(ctx, stream, per_thread, &s);
	bool captured = false;

	if (rc == CUDA_SUCCESS)
		rc = cu_mark_wait(&event->mark, &s, &captured);
	if (rc != CUDA_SUCCESS || captured || !event->recorded || event->ticket == 0)
		return cu_leave(rc);
	if (event->ctx->device != s.ctx->device)
		return cu_leave(cu_wait(event->ctx, event->ticket));
	*s.last_ticket = HM_MAX(*s.last_ticket, event->ticket);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	return wait_event(stream, event, flags, false);
}

CU_EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags)
{
	return wait_event(stream, event, flags, true);
}
