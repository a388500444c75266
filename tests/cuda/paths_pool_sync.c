/* What a synchronisation makes a pool give back, the container's other processes can have at once: each call that
 * waits. */
#include "fill.h"
#include "paths.h"
#include "views.h"

static CUresult by_context(CUstream stream, CUevent event)
{
	(void)stream;
	(void)event;
	return cuCtxSynchronize();
}
static CUresult by_named_context(CUstream stream, CUevent event)
{
	CUcontext ctx;

	(void)stream;
	(void)event;
	OK(cuCtxGetCurrent(&ctx));
	return cuCtxSynchronize_v2(ctx);
}
static CUresult by_stream(CUstream stream, CUevent event)
{
	(void)event;
	return cuStreamSynchronize(stream);
}
static CUresult by_stream_ptsz(CUstream stream, CUevent event)
{
	(void)event;
	return cuStreamSynchronize_ptsz(stream);
}
static CUresult by_event(CUstream stream, CUevent event)
{
	OK(cuEventRecord(event, stream));
	return cuEventSynchronize(event);
}

/* A pool that keeps all it has, until it is told otherwise. */
static CUmemoryPool keeping_pool(void)
{
	CUmemoryPool pool;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &(cuuint64_t) { UINT64_MAX }));
	return pool;
}
static CUresult by_trim(CUstream stream, CUevent event)
{
	(void)event;
	OK(cuStreamSynchronize(stream));
	return cuMemPoolTrimTo(keeping_pool(), 0);
}
static CUresult by_threshold(CUstream stream, CUevent event)
{
	(void)event;
	OK(cuMemPoolSetAttribute(keeping_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &(cuuint64_t) { 0 }));
	return cuStreamSynchronize(stream);
}

/* The other process: it has taken 64 MiB; told to go on, it frees and gives back. */
static CUdeviceptr taken_by_pool(CUstream stream)
{
	CUdeviceptr p;

	OK(cuMemAllocAsync(&p, 64 * MIB, stream));
	return p;
}

static CUdeviceptr taken_by_kept_pool(CUstream stream)
{
	(void)keeping_pool();
	return taken_by_pool(stream);
}

static CUdeviceptr taken_by_graph(CUstream stream)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					      .bytesize = 64 * MIB };
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	return params.dptr;
}
static CUresult by_graph_trim(CUstream stream, CUevent event)
{
	(void)event;
	OK(cuStreamSynchronize(stream));
	return cuDeviceGraphMemTrim(0);
}

static void giver(int sock, CUdeviceptr (*take)(CUstream), CUresult (*give_back)(CUstream, CUevent))
{
	CUstream stream;
	CUevent event;

	check_use(0);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CUdeviceptr p = take(stream);

	OK(cuStreamSynchronize(stream));
	child_nod(sock);
	child_await(sock);
	OK(cuMemFreeAsync(p, stream));
	OK(give_back(stream, event));
	child_nod(sock);
	child_wait(sock);
}

static void pool_given_back(const char *role)
{
	NEED(cuMemAllocAsync);
	check_use_with_pools();
	struct child c = child_start_ready(role);
	size_t with = views_match_books(0);

	child_nod(c.sock);
	child_await(c.sock);
	HOLDS(views_match_books(0) + 64 * MIB <= with, "of %zu only %zu came back", 64 * MIB, with - views_used(0));
	fill_expect_room(0);
	child_end(&c);
}

#define BACK(name, role_name, take, give_back)                                                                         \
	static void role_##name(int sock)                                                                              \
	{                                                                                                              \
		giver(sock, take, give_back);                                                                          \
	}                                                                                                              \
	static void run_##name(void)                                                                                   \
	{                                                                                                              \
		pool_given_back(role_name);                                                                            \
	}
BACK(context, "sync-context", taken_by_pool, by_context)
BACK(stream, "sync-stream", taken_by_pool, by_stream)
BACK(event, "sync-event", taken_by_pool, by_event)
BACK(stream_ptsz, "sync-stream-ptsz", taken_by_pool, by_stream_ptsz)
BACK(trim, "trim", taken_by_kept_pool, by_trim)
BACK(threshold, "threshold", taken_by_kept_pool, by_threshold)
BACK(graph_trim, "graph-trim", taken_by_graph, by_graph_trim)
BACK(named_context, "sync-named-context", taken_by_pool, by_named_context)

static void run_named_context_if_there(void)
{
	NEED(cuCtxSynchronize_v2);
	run_named_context();
}

const struct path paths_pool_sync[] = {
	{ "pool-back-by-context", run_context, BARE_BREAKS },
	{ "pool-back-by-named-context", run_named_context_if_there, BARE_BREAKS },
	{ "pool-back-by-stream", run_stream, BARE_BREAKS },
	{ "pool-back-by-stream-per-thread", run_stream_ptsz, BARE_BREAKS },
	{ "pool-back-by-event", run_event, BARE_BREAKS },
	{ "pool-back-by-trim", run_trim, BARE_BREAKS },
	{ "pool-back-by-threshold", run_threshold, BARE_BREAKS },
	{ "graph-back-by-trim", run_graph_trim, BARE_BREAKS },
	{ 0 },
};
const struct role roles_pool_sync[] = {
	{ "sync-context", role_context },
	{ "sync-named-context", role_named_context },
	{ "sync-stream", role_stream },
	{ "sync-stream-ptsz", role_stream_ptsz },
	{ "sync-event", role_event },
	{ "trim", role_trim },
	{ "threshold", role_threshold },
	{ "graph-trim", role_graph_trim },
	{ 0 },
};
