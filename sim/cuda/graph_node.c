/* The calls that add nodes to graphs. */
#include <stddef.h>

#include "sim/cuda/graph.h"
#include "sim/cuda/graph_memory.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/launch.h"

/* Where a node is to stand. */
struct place {
	CUgraphNode *out;
	CUgraph graph;
	const CUgraphNode *deps;
	size_t count;
};

/* Takes the lock and looks the graph up. */
static CUresult enter_place(const struct place *at)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return at->out != NULL && cu_handle_is(at->graph, CU_GRAPH) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult put(const struct place *at, struct cu_work *work)
{
	return cu_graph_add(at->graph, at->deps, at->count, work, at->out);
}

CU_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count)
{
	struct place at = { out, graph, deps, count };
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUresult rc = enter_place(&at);

	return rc == CUDA_SUCCESS ? cu_leave(put(&at, &work)) : rc;
}

static CUresult add_child(const struct place *at, CUgraph child, bool move)
{
	struct cu_work work;
	CUresult rc = enter_place(at);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(child, CU_GRAPH) || child == at->graph)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	rc = move ? cu_work_of_moved_graph(at->graph, child, &work) : cu_work_of_graph(child, &work);
	return cu_leave(rc == CUDA_SUCCESS ? put(at, &work) : rc);
}

CU_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
					    CUgraph child)
{
	return add_child(&(struct place) { out, graph, deps, count }, child, false);
}

static CUresult add_kernel(const struct place *at, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	struct CUctx_st *ctx;
	CUresult rc = enter_place(at);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_context_get(p->ctx, &ctx);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .ctx = ctx, .ctx_id = ctx->id };

	work.launch = (struct cu_launch) { .grid = { p->gridDimX, p->gridDimY, p->gridDimZ },
					   .block = { p->blockDimX, p->blockDimY, p->blockDimZ },
					   .shared_bytes = p->sharedMemBytes };
	rc = cu_launch_fill(&work.launch, ctx, p->func != NULL ? (const void *)p->func : (const void *)p->kern,
			    p->kernelParams, p->extra);
	return cu_leave(rc == CUDA_SUCCESS ? put(at, &work) : rc);
}

CU_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
					const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (params == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	/* The older form ends before the two newer fields. */
	return add_kernel(&(struct place) { out, graph, deps, count },
			  &(CUDA_KERNEL_NODE_PARAMS_v2) { params->func, params->gridDimX, params->gridDimY,
							  params->gridDimZ, params->blockDimX, params->blockDimY,
							  params->blockDimZ, params->sharedMemBytes,
							  params->kernelParams, params->extra });
}

CU_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
					   const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	if (params == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return add_kernel(&(struct place) { out, graph, deps, count }, params);
}

static CUresult check_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	const CUmemPoolProps *props = &p->poolProps;

	if (p->bytesize == 0 || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->handleTypes != 0 ||
	    (p->accessDescCount > 0 && p->accessDescs == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED; /* host memory in graphs is not simulated */
	if (props->location.id < 0 || (unsigned)props->location.id >= cu.count)
		return CUDA_ERROR_INVALID_DEVICE;
	return p->bytesize > cu_info((unsigned)props->location.id)->memory_bytes ? CUDA_ERROR_OUT_OF_MEMORY
										 : CUDA_SUCCESS;
}

static CUresult add_alloc(const struct place *at, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	CUresult rc = enter_place(at);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = at->graph->owned ? CUDA_ERROR_NOT_SUPPORTED : check_alloc(p);
	if (rc == CUDA_SUCCESS)
		rc = cu_graph_alloc_new(p, at->graph, &work.alloc);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	CUdeviceptr ptr = work.alloc->params.dptr;

	rc = put(at, &work);
	if (rc == CUDA_SUCCESS)
		p->dptr = ptr;
	return cu_leave(rc);
}

CU_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
					  CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	return params == NULL ? CUDA_ERROR_INVALID_VALUE
			      : add_alloc(&(struct place) { out, graph, deps, count }, params);
}

CUresult cu_work_of_free(CUgraph graph, CUdeviceptr ptr, struct cu_work *out)
{
	struct cu_graph_alloc *a = cu_graph_alloc_at(ptr);

	/* Freed once, by its own graph or by others. */
	if (a == NULL || a->owner_frees || (a->owner == graph && a->other_frees))
		return CUDA_ERROR_INVALID_VALUE;
	LIST_FOR_EACH (&graph->nodes, it) {
		const struct CUgraphNode_st *node = HM_CONTAINER(it, struct CUgraphNode_st, link);

		if (node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE && node->work.alloc == a)
			return CUDA_ERROR_INVALID_VALUE;
	}
	*out = (struct cu_work) { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .alloc = cu_graph_alloc_ref(a) };
	return CUDA_SUCCESS;
}

void cu_graph_frees(CUgraph graph, struct cu_graph_alloc *a)
{
	if (a->owner == graph)
		a->owner_frees = true;
	else
		a->other_frees = true;
}

static CUresult add_free(const struct place *at, CUdeviceptr ptr)
{
	struct cu_work work;
	CUresult rc = enter_place(at);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = at->graph->owned ? CUDA_ERROR_NOT_SUPPORTED : cu_work_of_free(at->graph, ptr, &work);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	rc = put(at, &work);
	if (rc == CUDA_SUCCESS)
		cu_graph_frees(at->graph, work.alloc);
	return cu_leave(rc);
}

CU_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
					 CUdeviceptr ptr)
{
	return add_free(&(struct place) { out, graph, deps, count }, ptr);
}

static CUresult add_any(const struct place *at, CUgraphNodeParams *p)
{
	if (p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return add_kernel(at, &p->kernel);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return add_alloc(at, &p->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE: return add_free(at, p->free.dptr);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return add_child(at, p->graph.graph, p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
	case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(at->out, at->graph, at->deps, at->count);
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CU_EXPORT CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
				  CUgraphNodeParams *params)
{
	return add_any(&(struct place) { out, graph, deps, count }, params);
}

/* Edge data (programmatic launches) has no effect. */
CU_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
				     const CUgraphEdgeData *edges HM_UNUSED, size_t count, CUgraphNodeParams *params)
{
	return add_any(&(struct place) { out, graph, deps, count }, params);
}

/* Takes the lock and looks a memory node up. */
static CUresult enter_memory_node(CUgraphNode node, CUgraphNodeType type)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(node, CU_NODE) && node->work.type == type ? CUDA_SUCCESS
								      : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

CU_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_memory_node(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = node->work.alloc->params;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_memory_node(node, CU_GRAPH_NODE_TYPE_MEM_FREE);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = node->work.alloc->params.dptr;
	return cu_leave(CUDA_SUCCESS);
}
