/* Graphs that can be launched: a copy of what was instantiated. A launch runs its nodes in order; all memory that it
 * will have at most is reserved first, so that it is refused whole or not at all. */
#include <stdlib.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/graph_memory.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/launch.h"
#include "sim/cuda/space.h"

struct CUgraphExec_st {
	CUgraph graph;
	unsigned long long flags;
};

/* The work of each node in turn; `break` ends it as in any loop. */
#define FOR_EACH_WORK(g, w)                                                                                            \
	LIST_FOR_EACH (&(g)->nodes, it_##w)                                                                            \
		for (struct cu_work *w = &HM_CONTAINER(it_##w, struct CUgraphNode_st, link)->work; w != NULL; w = NULL)

typedef CUresult visit_work(struct cu_work *w, void *arg);

/* The work of all nodes, those of children at their parent's place, until one is not liked. */
static CUresult visit_all(CUgraph g, visit_work *visit, void *arg)
{
	CUresult rc = CUDA_SUCCESS;

	FOR_EACH_WORK(g, w)
	if (rc == CUDA_SUCCESS)
		rc = w->type == CU_GRAPH_NODE_TYPE_GRAPH ? visit_all(w->child, visit, arg) : visit(w, arg);
	return rc;
}

/* An allocation is in one graph at a time that can be launched. */
static CUresult refuse_claimed(struct cu_work *w, void *arg HM_UNUSED)
{
	return w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && w->alloc->instantiated ? CUDA_ERROR_NOT_SUPPORTED
										 : CUDA_SUCCESS;
}

static CUresult claim_one(struct cu_work *w, void *on)
{
	if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		w->alloc->instantiated = *(const bool *)on;
	return CUDA_SUCCESS;
}

static void claim(CUgraph g, bool on)
{
	visit_all(g, claim_one, &on);
}

/* What the graph has in use beyond what its device's graphs have now, at this step and at the most, on one device. */
struct peak {
	unsigned device;
	bool frees_first;
	int64_t now, most;
};

static CUresult add_to_peak(struct cu_work *w, void *arg)
{
	struct peak *p = arg;
	bool takes = w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;

	if ((!takes && w->type != CU_GRAPH_NODE_TYPE_MEM_FREE) || w->alloc->region->device != p->device ||
	    (takes && p->frees_first && w->alloc->live)) /* given back before the launch, and taken again */
		return CUDA_SUCCESS;
	p->now += takes ? (int64_t)w->alloc->region->bytes : -(int64_t)w->alloc->region->bytes;
	p->most = HM_MAX(p->most, p->now);
	return CUDA_SUCCESS;
}

static uint64_t peak(CUgraph g, unsigned device, bool frees_first)
{
	struct peak p = { .device = device, .frees_first = frees_first };

	visit_all(g, add_to_peak, &p);
	return (uint64_t)p.most;
}

static CUresult reserve(struct CUgraphExec_st *x)
{
	bool frees_first = (x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;

	for (unsigned i = 0; i < cu.count; i++) {
		CUresult rc = cu_graph_reserve(i, peak(x->graph, i, frees_first));

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return CUDA_SUCCESS;
}

static void exec_free(struct CUgraphExec_st *x)
{
	claim(x->graph, false);
	cu_graph_free(x->graph);
	cu_handle_remove(x);
	free(x);
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || !cu_handle_is(g, CU_GRAPH) || g->owned || flags > 15)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	rc = visit_all(g, refuse_claimed, NULL);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	struct CUgraphExec_st *x = calloc(1, sizeof *x);

	rc = x != NULL ? cu_graph_copy(g, &x->graph) : CUDA_ERROR_OUT_OF_MEMORY;
	if (rc == CUDA_SUCCESS && !cu_handle_add(x, CU_EXEC)) {
		cu_graph_free(x->graph);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		free(x);
		return cu_leave(rc);
	}
	x->flags = flags;
	claim(x->graph, true);
	if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
		rc = reserve(x);
	if (rc == CUDA_SUCCESS)
		*out = x;
	else
		exec_free(x);
	return cu_leave(rc);
}

/* The old forms, with a place for what went wrong: nothing is written there where nothing did. */
CU_EXPORT CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node HM_UNUSED,
				      char *log HM_UNUSED, size_t log_bytes HM_UNUSED)
{
	return instantiate(out, graph, 0);
}

CU_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node HM_UNUSED,
					 char *log HM_UNUSED, size_t log_bytes HM_UNUSED)
{
	return instantiate(out, graph, 0);
}

/* Uploading needs a stream, which only the form with parameters has. */
CU_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(out, graph, flags);
}

static CUresult instantiate_with(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	if (p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = instantiate(out, graph, p->flags);

	p->hErrNode_out = NULL;
	p->result_out = rc == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
	return rc;
}

CU_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return instantiate_with(out, graph, params);
}

CU_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph,
						     CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return instantiate_with(out, graph, params);
}

/* Takes the lock and looks the graph and the stream up. */
static CUresult enter_exec(CUgraphExec x, CUstream stream, bool per_thread, struct cu_stream_ref *s)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_handle_is(x, CU_EXEC) ? cu_stream_get(ctx, stream, per_thread, s) : CUDA_ERROR_INVALID_VALUE;
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

/* What would make a launch impossible: memory that is still in use, or not there to be freed. */
static CUresult check_one(struct cu_work *w, void *frees_first)
{
	if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && w->alloc->live && !*(const bool *)frees_first)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->type == CU_GRAPH_NODE_TYPE_MEM_FREE && !w->alloc->owner_frees && !w->alloc->live)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	    (!cu_handle_is(w->ctx, CU_CONTEXT) || w->ctx->id != w->ctx_id || !w->ctx->alive))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (w->type == CU_GRAPH_NODE_TYPE_KERNEL && cu_function_get(w->launch.function) == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

static CUresult check(const struct CUgraphExec_st *x)
{
	bool frees_first = (x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;

	return visit_all(x->graph, check_one, &frees_first);
}

static CUresult give_live(struct cu_work *w, void *arg HM_UNUSED)
{
	if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && w->alloc->live)
		cu_graph_give(w->alloc);
	return CUDA_SUCCESS;
}

/* A kernel runs where its node says; behind the stream's work if that is on the same card. */
static CUresult run_kernel(const struct cu_work *w, const struct cu_stream_ref *s)
{
	struct cu_stream_ref where = { .ctx = w->ctx, .last_ticket = &w->ctx->last_ticket };

	if (w->ctx->device == s->ctx->device)
		where.last_ticket = s->last_ticket;
	CUresult rc = cu_launch_run(&w->launch, &where);

	if (rc == CUDA_SUCCESS && w->ctx->device == s->ctx->device)
		s->ctx->last_ticket = w->ctx->last_ticket;
	return rc;
}

static CUresult run(CUgraph g, const struct cu_stream_ref *s);

static CUresult run_work(struct cu_work *w, const struct cu_stream_ref *s)
{
	switch (w->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return run_kernel(w, s);
	case CU_GRAPH_NODE_TYPE_MEMCPY: return cu_copy_run(&w->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET: return cu_fill_run(&w->fill);
	case CU_GRAPH_NODE_TYPE_GRAPH: return run(w->child, s);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: cu_graph_take(w->alloc); return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEM_FREE: cu_graph_give(w->alloc); return CUDA_SUCCESS;
	default: return CUDA_SUCCESS;
	}
}

/* All of it, so that memory is where it belongs whatever a node did; the first failure is the answer. */
static CUresult run(CUgraph g, const struct cu_stream_ref *s)
{
	CUresult first = CUDA_SUCCESS;

	FOR_EACH_WORK(g, w)
	{
		CUresult rc = run_work(w, s);

		if (first == CUDA_SUCCESS)
			first = rc;
	}
	return first;
}

static CUresult launch_exec(struct CUgraphExec_st *x, const struct cu_stream_ref *s)
{
	CUresult rc = check(x);

	if (rc == CUDA_SUCCESS)
		rc = reserve(x);
	if (rc != CUDA_SUCCESS)
		return rc;
	visit_all(x->graph, give_live, NULL);
	return run(x->graph, s);
}

static CUresult launch(CUgraphExec x, CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	struct cu_captured captured;
	CUresult rc = enter_exec(x, stream, per_thread, &s);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_captured_get(&s, &captured);
	if (rc != CUDA_SUCCESS || captured.capture == NULL)
		return cu_leave(rc == CUDA_SUCCESS ? launch_exec(x, &s) : rc);
	struct cu_work work; /* a graph in a graph: captured as a child */

	rc = cu_work_of_graph(x->graph, &work);
	return cu_leave(rc == CUDA_SUCCESS ? cu_captured_add(&captured, &work, NULL) : rc);
}

CU_EXPORT CUresult cuGraphLaunch(CUgraphExec x, CUstream stream)
{
	return launch(x, stream, false);
}

CU_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec x, CUstream stream)
{
	return launch(x, stream, true);
}

static CUresult upload(CUgraphExec x, CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	CUresult rc = enter_exec(x, stream, per_thread, &s);

	return rc == CUDA_SUCCESS ? cu_leave(reserve(x)) : rc;
}

CU_EXPORT CUresult cuGraphUpload(CUgraphExec x, CUstream stream)
{
	return upload(x, stream, false);
}

CU_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec x, CUstream stream)
{
	return upload(x, stream, true);
}

static CUresult enter_exec_only(CUgraphExec x)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(x, CU_EXEC) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

CU_EXPORT CUresult cuGraphExecDestroy(CUgraphExec x)
{
	CUresult rc = enter_exec_only(x);

	if (rc != CUDA_SUCCESS)
		return rc;
	exec_free(x);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec x, cuuint64_t *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_exec_only(x);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = x->flags;
	return cu_leave(CUDA_SUCCESS);
}
