/* Memory of graphs: nodes that allocate, allocations in a capture, what stays reserved until a trim. */
#include "fill.h"
#include "paths.h"
#include "views.h"

static void need_graph_memory(void)
{
	NEED(cuGraphAddMemAllocNode);
	check_use_with_pools();
}

/* A graph that allocates and keeps: its memory is there from the launch until it is freed. */
static CUgraph graph_of(size_t bytes, CUdeviceptr *at)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					      .bytesize = bytes };
	CUgraphNode node;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	*at = params.dptr;
	return graph;
}

/* The five calls that make a graph executable. */
static CUresult with_params(CUgraphExec *out, CUgraph graph)
{
	return cuGraphInstantiateWithParams(out, graph, &(CUDA_GRAPH_INSTANTIATE_PARAMS) { 0 });
}
static CUresult with_params_ptsz(CUgraphExec *out, CUgraph graph)
{
	return cuGraphInstantiateWithParams_ptsz(out, graph, &(CUDA_GRAPH_INSTANTIATE_PARAMS) { 0 });
}
static CUresult with_flags(CUgraphExec *out, CUgraph graph)
{
	return cuGraphInstantiateWithFlags(out, graph, 0);
}
static CUresult first_version(CUgraphExec *out, CUgraph graph)
{
	return cuGraphInstantiate(out, graph, NULL, NULL, 0);
}
static CUresult second_version(CUgraphExec *out, CUgraph graph)
{
	return cuGraphInstantiate_v2(out, graph, NULL, NULL, 0);
}

static CUresult (*instantiate)(CUgraphExec *, CUgraph) = with_flags;
static CUresult (*launch)(CUgraphExec, CUstream);

/* cuda-path runs one path in a process, so these may be kept in one place. */
static CUresult take_node(uint64_t *out, size_t bytes)
{
	CUdeviceptr at = 0;
	CUgraph graph = graph_of(bytes, &at);
	CUgraphExec exec;

	SUPPORTED(instantiate(&exec, graph));
	CUresult rc = launch(exec, NULL);

	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	*out = at;
	return rc;
}

static CUresult give_node(uint64_t what)
{
	return cuMemFreeAsync(what, NULL);
}
static CUresult give_node_ptsz(uint64_t what)
{
	return cuMemFreeAsync_ptsz(what, NULL);
}

static void trim(void)
{
	OK(cuDeviceGraphMemTrim(0));
}

static void fill_graphs(CUresult (*take)(uint64_t *, size_t), CUresult (*give)(uint64_t))
{
	need_graph_memory();
	fill_and_empty_here(0, &(struct way) { .take = take, .give = give, .after = trim, .step = 32 * MIB });
}

#define VIA(function, make, run, give)                                                                                 \
	static void function(void)                                                                                     \
	{                                                                                                              \
		NEED(run);                                                                                             \
		instantiate = (make);                                                                                  \
		launch = (run);                                                                                        \
		fill_graphs(take_node, (give));                                                                        \
	}
VIA(run_flags, with_flags, cuGraphLaunch, give_node)
VIA(run_flags_ptsz, with_flags, cuGraphLaunch_ptsz, give_node_ptsz)
VIA(run_first, first_version, cuGraphLaunch, give_node)
VIA(run_second, second_version, cuGraphLaunch, give_node)
VIA(run_params, with_params, cuGraphLaunch, give_node)
VIA(run_params_ptsz, with_params_ptsz, cuGraphLaunch, give_node)

/* What is allocated in a capture comes with the launch of the graph. */
static CUresult take_captured(uint64_t *out, size_t bytes)
{
	CUdeviceptr at = 0;
	CUstream stream;
	CUgraphExec exec;
	CUgraph graph;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&at, bytes, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CUresult rc = cuGraphLaunch(exec, stream);

	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
	*out = at;
	return rc;
}

static void run_captured(void)
{
	fill_graphs(take_captured, give_node);
}

/* A graph that was moved into a graph: with memory nodes it may not be copied there. */
static CUresult take_child(uint64_t *out, size_t bytes)
{
	CUdeviceptr at = 0;
	CUgraph child = graph_of(bytes, &at), graph;
	CUgraphExec exec;
	CUgraphNode node;

	OK(cuGraphCreate(&graph, 0));
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_GRAPH };

	p.graph = (CUDA_CHILD_GRAPH_NODE_PARAMS) { child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE };
	SUPPORTED(cuGraphAddNode(&node, graph, NULL, 0, &p));
	SUPPORTED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CUresult rc = cuGraphLaunch(exec, NULL);

	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	*out = at;
	return rc;
}

static void run_child(void)
{
	fill_graphs(take_child, give_node);
}

/* Reserved by the upload, before any launch. */
static void upload(CUresult (*call)(CUgraphExec, CUstream))
{
	CUdeviceptr at;
	CUgraphExec exec, too_much;

	need_graph_memory();
	size_t start = views_match_books(0);

	OK(cuGraphInstantiateWithFlags(&too_much, graph_of(check_limit(), &at), 0));
	CUresult rc = call(too_much, NULL);

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "an upload of the whole limit beside a context: %d", rc);
	OK(cuGraphExecDestroy(too_much));
	OK(cuDeviceGraphMemTrim(0));
	OK(cuGraphInstantiateWithFlags(&exec, graph_of(64 * MIB, &at), 0));
	OK(call(exec, NULL));
	OK(cuCtxSynchronize());
	size_t up = views_match_books(0);

	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	HOLDS(views_match_books(0) >= start + 64 * MIB, "after the launch: %zu", views_used(0) - start);
	HOLDS(up >= start, "after the upload: %zu", up);
	OK(cuMemFree_v2(at));
	OK(cuGraphExecDestroy(exec));
	OK(cuDeviceGraphMemTrim(0));
	HOLDS(check_same(views_match_books(0), start), "after the trim: %zu", views_used(0) - start);
	fill_expect_room(0);
}

static void run_upload(void)
{
	NEED(cuGraphUpload);
	upload(cuGraphUpload);
}
static void run_upload_ptsz(void)
{
	NEED(cuGraphUpload_ptsz);
	upload(cuGraphUpload_ptsz);
}

static CUgraphExec exec_with(size_t bytes)
{
	CUdeviceptr at;
	CUgraphExec exec;

	OK(cuGraphInstantiateWithFlags(&exec, graph_of(bytes, &at), 0));
	return exec;
}

/* The handle of a graph that is gone may be another one's the next moment: that one, which allocates nothing, is
 * launched beside a full limit. */
static void run_reused(void)
{
	CUgraphExec exec, old;
	CUgraphNode node;
	CUdeviceptr at, p;
	CUgraph empty;

	need_graph_memory();
	OK(cuGraphCreate(&empty, 0));
	OK(cuGraphAddEmptyNode(&node, empty, NULL, 0));
	for (int i = 0; i < 64; i++) {
		OK(cuGraphInstantiateWithFlags(&old, graph_of(fill_piece(), &at), 0));
		OK(cuGraphExecDestroy(old));
		OK(cuGraphInstantiateWithFlags(&exec, empty, 0));
		if (exec == old)
			break;
	}
	size_t used = views_match_books(0);

	OK(cuMemAlloc_v2(&p, (check_limit() - used) / (2 * MIB) * 2 * MIB));
	CUresult rc = cuGraphLaunch(exec, NULL);

	HOLDS(rc == CUDA_SUCCESS, "a graph that allocates nothing, beside a full limit: %d", rc);
	rc = cuGraphLaunch(exec_with(fill_piece()), NULL);
	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "one that allocates: %d", rc);
}

/* Launched again, a graph that frees by itself takes its memory once. */
static void run_auto_free(void)
{
	CUdeviceptr at;
	CUgraphExec exec;

	need_graph_memory();
	size_t start = views_match_books(0), once = 0;

	SUPPORTED(cuGraphInstantiateWithFlags(&exec, graph_of(fill_piece(), &at),
					      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 5; i++) {
		OK(cuGraphLaunch(exec, NULL));
		OK(cuCtxSynchronize());
		once = i == 0 ? views_match_books(0) : once;
		HOLDS(check_same(views_match_books(0), once), "launch %d: %zu, the first %zu", i + 1,
		      views_used(0) - start, once - start);
	}
	fill_expect_room(0);
	OK(cuMemFree_v2(at));
	OK(cuGraphExecDestroy(exec));
	OK(cuDeviceGraphMemTrim(0));
	HOLDS(check_same(views_match_books(0), start), "after the trim: %zu", views_used(0) - start);
}

/* What graphs have reserved stays charged until the trim. */
static void run_trim(void)
{
	CUdeviceptr at;
	CUgraphExec exec;

	need_graph_memory();
	size_t start = views_match_books(0);

	OK(cuGraphInstantiateWithFlags(&exec, graph_of(64 * MIB, &at), 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuMemFreeAsync(at, NULL));
	OK(cuCtxSynchronize());
	HOLDS(views_match_books(0) >= start + 64 * MIB, "what graphs have reserved is not charged");
	OK(cuGraphExecDestroy(exec));
	OK(cuDeviceGraphMemTrim(0));
	HOLDS(check_same(views_match_books(0), start), "after the trim: %zu", views_used(0) - start);
	fill_expect_room(0);
}

const struct path paths_graph[] = {
	{ "graph-memory", run_flags, BARE_BREAKS },
	{ "graph-memory-per-thread", run_flags_ptsz, BARE_BREAKS },
	{ "graph-instantiate", run_first, BARE_BREAKS },
	{ "graph-instantiate-2", run_second, BARE_BREAKS },
	{ "graph-instantiate-params", run_params, BARE_BREAKS },
	{ "graph-instantiate-params-per-thread", run_params_ptsz, BARE_BREAKS },
	{ "graph-captured-alloc", run_captured, BARE_BREAKS },
	{ "graph-child", run_child, BARE_BREAKS },
	{ "graph-upload", run_upload, BARE_BREAKS },
	{ "graph-upload-per-thread", run_upload_ptsz, BARE_BREAKS },
	{ "graph-handle-reused", run_reused, BARE_BREAKS },
	{ "graph-auto-free", run_auto_free, BARE_BREAKS },
	{ "graph-trim", run_trim, BARE_BREAKS },
	{ 0 },
};
