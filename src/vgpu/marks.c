#include "vgpu/marks.h"

#include "vgpu/hooks.h"

/* A stretch of the driver's calls that a thread in a capture may not make (of the global mode, which other threads'
 * captures can have): allowed to this thread for as long as it lasts. */
static CUstreamCaptureMode relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (REAL(cuThreadExchangeStreamCaptureMode)(&mode) != CUDA_SUCCESS)
		return CU_STREAM_CAPTURE_MODE_RELAXED;
	return mode;
}

static void restore(CUstreamCaptureMode mode)
{
	REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

static CUresult record(CUevent event, CUstream stream, bool per_thread)
{
	return per_thread ? REAL(cuEventRecord_ptsz)(event, stream) : REAL(cuEventRecord)(event, stream);
}

static bool has_events(struct throttle_mark *m)
{
	CUstreamCaptureMode mode;
	bool good;

	if (HM_LIKELY(m->end != NULL))
		return true;
	mode = relax();
	good = (m->start != NULL || REAL(cuEventCreate)(&m->start, 0) == CUDA_SUCCESS) &&
	       REAL(cuEventCreate)(&m->end, 0) == CUDA_SUCCESS;
	restore(mode);
	if (!good)
		m->end = NULL;
	return good;
}

struct throttle_mark *marks_begin(struct throttle_ring *r, CUstream stream, bool per_thread)
{
	unsigned i = (r->first + r->pending) % MARKS;
	struct throttle_mark *m = &r->marks[i];

	if (r->pending == MARKS || !has_events(m))
		return NULL;
	if (r->last == (int)i + 1)
		r->last = 0;
	return record(m->start, stream, per_thread) == CUDA_SUCCESS ? m : NULL;
}

void marks_end(struct throttle_ring *r, struct throttle_mark *m, CUstream stream, bool per_thread, bool launched)
{
	if (launched && record(m->end, stream, per_thread) == CUDA_SUCCESS)
		r->pending++;
}

static bool elapsed_ns(CUevent from, CUevent to, int64_t *out)
{
	float ms;

	if (REAL(cuEventElapsedTime)(&ms, from, to) != CUDA_SUCCESS)
		return false;
	*out = (int64_t)((double)ms * 1e6);
	return true;
}

/* Streams overlap: charged is the time since the last of the others ended, where that is later than the start. */
static uint64_t span_of(const struct throttle_ring *r, const struct throttle_mark *m)
{
	int64_t span, since;

	if (!elapsed_ns(m->start, m->end, &span))
		return (uint64_t)gate_charge(m->estimate_ns);
	if (r->last != 0 && elapsed_ns(r->marks[r->last - 1].end, m->end, &since) && since < span)
		span = since;
	return span > 0 ? (uint64_t)span : 0;
}

static void finish(struct throttle_ring *r, struct throttle_mark *m, uint64_t now)
{
	uint64_t span = span_of(r, m);

	gate_done(&r->gate, now, m->estimate_ns, span, m->launches, m->launched_ns);
	estimate_learn(m->row, span);
	r->last = (int)(m - r->marks) + 1;
	r->first = (r->first + 1) % MARKS;
	r->pending--;
}

void marks_poll(struct throttle_ring *r, uint64_t now)
{
	CUstreamCaptureMode mode;

	if (r->pending == 0)
		return;
	mode = relax();
	while (r->pending != 0 && REAL(cuEventQuery)(r->marks[r->first].end) != CUDA_ERROR_NOT_READY)
		finish(r, &r->marks[r->first], now);
	restore(mode);
}

/* No more than the time since the first of those that had not finished when they were last looked at. */
static void charge_pending(struct throttle_ring *r, uint64_t now)
{
	const struct throttle_mark *m = &r->marks[r->first];
	uint64_t left = now > m->at_ns ? now - m->at_ns : 0;

	for (; r->pending != 0; r->pending--) {
		m = &r->marks[r->first];
		gate_done(&r->gate, now, m->estimate_ns, left, 1, m->launched_ns);
		left = 0;
		r->first = (r->first + 1) % MARKS;
	}
}

void marks_drop(struct throttle_ring *r, uint64_t now)
{
	charge_pending(r, now);
	for (unsigned i = 0; i < MARKS; i++)
		r->marks[i].start = r->marks[i].end = NULL;
	r->first = 0;
	r->last = 0;
	gate_idle(&r->gate);
}
