#include "sim/cuda/capture.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/capture_state.h"
#include "sim/cuda/handles.h"

static struct link captures = { &captures, &captures };
static _Thread_local CUstreamCaptureMode thread_mode; /* its address names the thread */

static struct cu_capture *capture_of(uint64_t id)
{
	LIST_FOR_EACH (&captures, it) {
		struct cu_capture *c = HM_CONTAINER(it, struct cu_capture, link);

		if (c->id == id)
			return c;
	}
	return NULL;
}

/* Whether a stream takes part in it that the context's legacy stream waits for. */
static bool blocks(const struct cu_capture *c, const struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&c->members, it) {
		const struct cu_member *m = HM_CONTAINER(it, struct cu_member, link);

		if (m->ctx == ctx && m->blocking)
			return true;
	}
	return false;
}

CUresult cu_captured_look(const struct cu_stream_ref *s, struct cu_captured *out)
{
	*out = (struct cu_captured) { NULL, NULL };
	if (s->slot != NULL) {
		out->capture = s->slot->capture_id != 0 ? capture_of(s->slot->capture_id) : NULL;
		out->member = out->capture != NULL ? s->slot->member : NULL;
		return CUDA_SUCCESS;
	}
	LIST_FOR_EACH (&captures, it) {
		struct cu_capture *c = HM_CONTAINER(it, struct cu_capture, link);

		if (!c->spoilt && blocks(c, s->ctx)) {
			out->capture = c;
			return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return CUDA_SUCCESS;
}

CUresult cu_captured_get(const struct cu_stream_ref *s, struct cu_captured *out)
{
	CUresult rc = cu_captured_look(s, out);

	if (rc != CUDA_SUCCESS)
		out->capture->spoilt = true;
	else if (out->capture != NULL && out->capture->spoilt)
		rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return rc;
}

CUresult cu_captured_refuse(const struct cu_captured *c)
{
	c->capture->spoilt = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cu_capture_refuses(const struct cu_stream_ref *s)
{
	struct cu_captured c;
	CUresult rc = cu_captured_get(s, &c);

	return rc == CUDA_SUCCESS && c.capture != NULL ? cu_captured_refuse(&c) : rc;
}

static bool forbids(const struct cu_capture *c)
{
	bool own = c->thread == &thread_mode;

	if (c->spoilt || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (own)
		return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult cu_capture_guard(void)
{
	CUresult rc = CUDA_SUCCESS;

	LIST_FOR_EACH (&captures, it) {
		struct cu_capture *c = HM_CONTAINER(it, struct cu_capture, link);

		if (forbids(c)) {
			c->spoilt = true;
			rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return rc;
}

CUresult cu_enter_unsafe(struct CUctx_st **out)
{
	CUresult rc = cu_enter_context(out);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = cu_context_owner(*out);
	rc = cu_capture_guard();
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

CUresult cu_capture_may_wait(const struct cu_stream_ref *s)
{
	CUresult rc = cu_capture_refuses(s);

	return rc == CUDA_SUCCESS ? cu_capture_guard() : rc;
}

/* Adds those that are not there yet. */
static bool depend_on(struct cu_member *m, const CUgraphNode *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		while (at < m->count && m->deps[at] != nodes[i])
			at++;
		if (at < m->count)
			continue;
		if (m->count == m->room) {
			size_t room = m->room > 0 ? 2 * m->room : 4;
			CUgraphNode *more = realloc(m->deps, room * sizeof(CUgraphNode));

			if (more == NULL)
				return false;
			m->deps = more;
			m->room = room;
		}
		m->deps[m->count++] = nodes[i];
	}
	return true;
}

CUresult cu_captured_add(struct cu_captured *c, struct cu_work *work, CUgraphNode *node)
{
	struct cu_member *m = c->member;
	CUgraphNode added;
	CUresult rc = cu_graph_add(c->capture->graph, m->deps, m->count, work, &added);

	if (rc == CUDA_SUCCESS) {
		m->count = 0;
		if (!depend_on(m, &added, 1))
			rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS)
		c->capture->spoilt = true;
	else if (node != NULL)
		*node = added;
	return rc;
}

static struct cu_member *join(struct cu_capture *c, const struct cu_stream_ref *s, const CUgraphNode *deps, size_t n)
{
	struct cu_member *m = calloc(1, sizeof *m);

	if (m == NULL || !depend_on(m, deps, n)) {
		free(m);
		return NULL;
	}
	m->ctx = s->ctx;
	m->blocking = s->stream != NULL && (s->stream->flags & CU_STREAM_NON_BLOCKING) == 0;
	link_append(&c->members, &m->link);
	*s->slot = (struct cu_capture_slot) { c->id, m };
	return m;
}

static void capture_free(struct cu_capture *c, bool keep_graph)
{
	LIST_FOR_EACH (&c->members, it) {
		struct cu_member *m = HM_CONTAINER(it, struct cu_member, link);

		link_remove(&m->link);
		free(m->deps);
		free(m);
	}
	if (c->own_graph && !keep_graph)
		cu_graph_free(c->graph);
	link_remove(&c->link);
	free(c);
}

CUresult cu_capture_begin(const struct cu_stream_ref *s, CUstreamCaptureMode mode, CUgraph graph,
			  const CUgraphNode *deps, size_t n)
{
	static uint64_t last_id;
	struct cu_captured now;

	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->slot == NULL)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	(void)cu_captured_look(s, &now);
	if (now.capture != NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct cu_capture *c = calloc(1, sizeof *c);

	if (c == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list_init(&c->members);
	c->id = ++last_id;
	c->mode = mode;
	c->thread = &thread_mode;
	c->own_graph = graph == NULL;
	c->graph = graph;
	CUresult rc = graph == NULL ? cu_graph_new(&c->graph) : CUDA_SUCCESS;

	if (rc == CUDA_SUCCESS) {
		c->origin = join(c, s, deps, n);
		rc = c->origin != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		capture_free(c, graph != NULL || c->graph == NULL);
		return rc;
	}
	link_append(&captures, &c->link);
	return CUDA_SUCCESS;
}

/* Whether another stream's last work is nothing that the origin has waited for. */
static bool unjoined(const struct cu_capture *c)
{
	const struct cu_member *o = c->origin;

	LIST_FOR_EACH (&c->members, it) {
		const struct cu_member *m = HM_CONTAINER(it, struct cu_member, link);

		for (size_t i = 0; m != o && i < m->count; i++) {
			size_t at = 0;

			while (at < o->count && o->deps[at] != m->deps[i])
				at++;
			if (at == o->count && !m->deps[i]->has_dependents)
				return true;
		}
	}
	return false;
}

CUresult cu_capture_end(const struct cu_stream_ref *s, CUgraph *out)
{
	struct cu_captured now;

	(void)cu_captured_look(s, &now);
	if (s->slot == NULL || now.capture == NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct cu_capture *c = now.capture;

	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != &thread_mode)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (now.member != c->origin) {
		c->spoilt = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	CUresult rc = c->spoilt     ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
		      : unjoined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
				    : CUDA_SUCCESS;

	*out = rc == CUDA_SUCCESS ? c->graph : NULL;
	capture_free(c, rc == CUDA_SUCCESS);
	return rc;
}

void cu_capture_stream_gone(const struct cu_capture_slot *slot)
{
	struct cu_capture *c = slot->capture_id != 0 ? capture_of(slot->capture_id) : NULL;

	if (c == NULL)
		return;
	if (slot->member == c->origin)
		capture_free(c, false);
	else
		c->spoilt = true;
}

void cu_mark_clear(struct cu_mark *mark)
{
	free(mark->deps);
	*mark = (struct cu_mark) { .capture_id = 0 };
}

CUresult cu_mark_set(struct cu_mark *mark, const struct cu_captured *c)
{
	cu_mark_clear(mark);
	if (c->capture == NULL)
		return CUDA_SUCCESS;
	mark->deps = calloc(HM_MAX(c->member->count, (size_t)1), sizeof(CUgraphNode));
	if (mark->deps == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < c->member->count; i++)
		mark->deps[i] = c->member->deps[i];
	mark->count = c->member->count;
	mark->capture_id = c->capture->id;
	return CUDA_SUCCESS;
}

CUresult cu_mark_wait(const struct cu_mark *mark, const struct cu_stream_ref *s, bool *captured)
{
	struct cu_captured now;
	CUresult rc = cu_captured_get(s, &now);

	*captured = now.capture != NULL || mark->capture_id != 0;
	if (rc != CUDA_SUCCESS || !*captured)
		return rc;
	struct cu_capture *c = capture_of(mark->capture_id);

	if (now.capture != NULL && now.capture != c) {
		now.capture->spoilt = true;
		return mark->capture_id == 0 ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (c == NULL) /* the capture it was recorded in has ended */
		return CUDA_ERROR_CAPTURED_EVENT;
	if (c->spoilt)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->slot == NULL) {
		c->spoilt = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	bool ok = now.capture == c ? depend_on(now.member, mark->deps, mark->count)
				   : join(c, s, mark->deps, mark->count) != NULL;

	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cu_capture_depend(struct cu_captured *c, const CUgraphNode *deps, size_t n, bool replace)
{
	for (size_t i = 0; i < n; i++)
		if (!cu_handle_is(deps[i], CU_NODE) || deps[i]->graph != c->capture->graph)
			return CUDA_ERROR_INVALID_VALUE;
	if (replace)
		c->member->count = 0;
	return depend_on(c->member, deps, n) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CU_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	if (mode == NULL || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode before = thread_mode;

	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
