/* The calls that begin, end and look at captures. */
#include "sim/cuda/capture_state.h"
#include "sim/cuda/handles.h"

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

static CUresult begin(CUstream stream, bool per_thread, CUstreamCaptureMode mode)
{
	struct cu_stream_ref s;
	CUresult rc = enter_stream(stream, per_thread, &s);

	return rc == CUDA_SUCCESS ? cu_leave(cu_capture_begin(&s, mode, NULL, NULL, 0)) : rc;
}

CU_EXPORT CUresult cuStreamBeginCapture(CUstream stream)
{
	return begin(stream, false, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CU_EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
	return begin(stream, true, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CU_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return begin(stream, false, mode);
}

CU_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	return begin(stream, true, mode);
}

static CUresult begin_to(CUstream stream, bool per_thread, CUgraph graph, const CUgraphNode *deps, size_t n,
			 CUstreamCaptureMode mode)
{
	struct cu_stream_ref s;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(graph, CU_GRAPH) || (n > 0 && deps == NULL))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < n; i++)
		if (!cu_handle_is(deps[i], CU_NODE) || deps[i]->graph != graph)
			return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(cu_capture_begin(&s, mode, graph, deps, n));
}

CU_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *deps,
					       const CUgraphEdgeData *edges HM_UNUSED, size_t count,
					       CUstreamCaptureMode mode)
{
	return begin_to(stream, false, graph, deps, count, mode);
}

CU_EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *deps,
						    const CUgraphEdgeData *edges HM_UNUSED, size_t count,
						    CUstreamCaptureMode mode)
{
	return begin_to(stream, true, graph, deps, count, mode);
}

static CUresult end(CUstream stream, bool per_thread, CUgraph *out)
{
	struct cu_stream_ref s;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(out == NULL ? CUDA_ERROR_INVALID_VALUE : cu_capture_end(&s, out));
}

CU_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
	return end(stream, false, out);
}

CU_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *out)
{
	return end(stream, true, out);
}

/* What is asked for: NULL where it is not. */
struct info {
	CUstreamCaptureStatus *status;
	cuuint64_t *id;
	CUgraph *graph;
	const CUgraphNode **deps;
	const CUgraphEdgeData **edges;
	size_t *count;
};

static CUresult info(CUstream stream, bool per_thread, struct info out)
{
	struct cu_stream_ref s;
	struct cu_captured c;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out.status == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	rc = cu_captured_look(&s, &c);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	*out.status = c.capture == NULL   ? CU_STREAM_CAPTURE_STATUS_NONE
		      : c.capture->spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return cu_leave(CUDA_SUCCESS);
	if (out.id != NULL)
		*out.id = c.capture->id;
	if (out.graph != NULL)
		*out.graph = c.capture->graph;
	if (out.deps != NULL)
		*out.deps = c.member->deps;
	if (out.edges != NULL)
		*out.edges = NULL; /* all edges are plain ones */
	if (out.count != NULL)
		*out.count = c.member->count;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out)
{
	return info(stream, false, (struct info) { .status = out });
}

CU_EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *out)
{
	return info(stream, true, (struct info) { .status = out });
}

CU_EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return info(stream, false, (struct info) { status, id, NULL, NULL, NULL, NULL });
}

CU_EXPORT CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return info(stream, true, (struct info) { status, id, NULL, NULL, NULL, NULL });
}

CU_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
					     CUgraph *graph, const CUgraphNode **deps, size_t *count)
{
	return info(stream, false, (struct info) { status, id, graph, deps, NULL, count });
}

CU_EXPORT CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
						  CUgraph *graph, const CUgraphNode **deps, size_t *count)
{
	return info(stream, true, (struct info) { status, id, graph, deps, NULL, count });
}

CU_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
					     CUgraph *graph, const CUgraphNode **deps, const CUgraphEdgeData **edges,
					     size_t *count)
{
	return info(stream, false, (struct info) { status, id, graph, deps, edges, count });
}

CU_EXPORT CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
						  CUgraph *graph, const CUgraphNode **deps,
						  const CUgraphEdgeData **edges, size_t *count)
{
	return info(stream, true, (struct info) { status, id, graph, deps, edges, count });
}

static CUresult update(CUstream stream, bool per_thread, const CUgraphNode *deps, size_t n, unsigned flags)
{
	struct cu_stream_ref s;
	struct cu_captured c;
	CUresult rc = enter_stream(stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_captured_get(&s, &c);
	if (rc == CUDA_SUCCESS && c.capture == NULL)
		rc = CUDA_ERROR_ILLEGAL_STATE;
	if (rc == CUDA_SUCCESS && (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n > 0 && deps == NULL)))
		rc = CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		rc = cu_capture_depend(&c, deps, n, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	return cu_leave(rc);
}

CU_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t count, unsigned flags)
{
	return update(stream, false, deps, count, flags);
}

CU_EXPORT CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode *deps, size_t count,
							  unsigned flags)
{
	return update(stream, true, deps, count, flags);
}

CU_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps,
							const CUgraphEdgeData *edges HM_UNUSED, size_t count,
							unsigned flags)
{
	return update(stream, false, deps, count, flags);
}

CU_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode *deps,
							     const CUgraphEdgeData *edges HM_UNUSED, size_t count,
							     unsigned flags)
{
	return update(stream, true, deps, count, flags);
}
