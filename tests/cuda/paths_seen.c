/* What a call gives back the container's other processes see at once, before this one looks at anything itself. And
 * pools whose memory is the host's. */
#include "fill.h"
#include "paths.h"
#include "views.h"

/* The other process: each time that it is asked, it tells what it sees in use of card 0. */
static void role_looker(int sock)
{
	char ask;

	check_use(0);
	for (;;) {
		size_t used = check_bare() ? 0 : views_used(0);

		child_tell(sock, &used, sizeof used, -1);
		(void)child_hear(sock, &ask, 1);
	}
}

static struct child looker;

static size_t seen(void)
{
	size_t used = 0;

	(void)child_hear(looker.sock, &used, sizeof used);
	return used;
}

static size_t look(void)
{
	child_tell(looker.sock, "", 1, -1);
	return seen();
}

static void expect_seen(size_t start)
{
	size_t used = look();

	HOLDS(check_bare() || used == start, "%zu of what was given back is still seen", used - start);
	child_kill(&looker);
	fill_expect_room(0);
}

static size_t begin(void)
{
	int there = 0;

	NEED(cuMemAllocAsync);
	check_use(0);
	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
	if (there == 0)
		check_not_available("this card has no memory pools");
	looker = child_start("looker");
	return seen();
}

static void set_threshold(CUmemoryPool pool, cuuint64_t bytes)
{
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

/* Allocates and frees; what the pool keeps of it is still there. */
static void leave_in(CUmemoryPool pool, size_t start)
{
	CUdeviceptr p;

	OK(cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	HOLDS(check_bare() || look() == start + 64 * MIB, "a pool keeps what it may keep");
}

static void run_trim(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	size_t start = begin();
	CUmemoryPool pool;

	OK(cuMemPoolCreate(&pool, &props));
	set_threshold(pool, UINT64_MAX);
	leave_in(pool, start);
	OK(cuMemPoolTrimTo(pool, 0));
	expect_seen(start);
}

/* What a pool may keep is less from now on: the next synchronisation gives the rest back. */
static void run_threshold(void)
{
	size_t start = begin();
	CUmemoryPool pool;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	set_threshold(pool, UINT64_MAX);
	leave_in(pool, start);
	set_threshold(pool, 0);
	OK(cuStreamSynchronize(NULL));
	expect_seen(start);
}

static void run_free_per_thread(void)
{
	size_t start = begin();
	CUdeviceptr p;

	OK(cuMemAllocAsync_ptsz(&p, 64 * MIB, NULL));
	OK(cuMemFreeAsync_ptsz(p, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	expect_seen(start);
}

static void run_graph_trim(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					      .bytesize = 64 * MIB };
	CUgraphNode made, freed;
	CUgraphExec exec;
	CUgraph graph;

	NEED(cuGraphAddMemAllocNode);
	size_t start = begin();

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&made, graph, NULL, 0, &params));
	OK(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	HOLDS(check_bare() || look() == start + 64 * MIB, "graphs keep what they took");
	OK(cuDeviceGraphMemTrim(0));
	expect_seen(start);
}

/* A graph that would need more than the limit, never launched. Another one that gets its address needs nothing of that.
 */
static void run_graph_again(void)
{
	enum { TRIES = 64 };
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					      .bytesize = check_limit() + 64 * MIB };
	CUgraph large, empty;
	CUgraphExec first, exec = NULL;
	CUgraphNode node;

	NEED(cuGraphAddMemAllocNode);
	check_use(0);
	OK(cuGraphCreate(&large, 0));
	SUPPORTED(cuGraphAddMemAllocNode(&node, large, NULL, 0, &params));
	OK(cuGraphCreate(&empty, 0));
	OK(cuGraphAddEmptyNode(&node, empty, NULL, 0));
	for (int i = 0; i < TRIES; i++) {
		OK(cuGraphInstantiateWithFlags(&first, large, 0));
		OK(cuGraphExecDestroy(first));
		OK(cuGraphInstantiateWithFlags(&exec, empty, 0));
		if (exec == first)
			break;
	}
	if (exec != first)
		check_not_available("no graph got another one's address");
	CUresult rc = cuGraphLaunch(exec, NULL);

	HOLDS(rc == CUDA_SUCCESS, "a graph without memory was refused: %d", rc);
}

/* ---- pools of the host */

static const CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST, 0 };

static void expect_free_of_charge(CUmemoryPool pool)
{
	size_t start = views_match_books(0);
	CUdeviceptr p;

	OK(cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, NULL));
	OK(cuStreamSynchronize(NULL));
	HOLDS(views_match_books(0) == start, "memory of the host is charged to the card: %zu", views_used(0) - start);
	fill_expect_room(0);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
}

static void run_host(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = host };
	CUmemoryPool pool;

	NEED(cuMemAllocFromPoolAsync);
	check_use(0);
	SUPPORTED(cuMemPoolCreate(&pool, &props));
	expect_free_of_charge(pool);
}

static void run_host_default(void)
{
	CUmemLocation where = host;
	CUmemoryPool pool;

	NEED(cuMemGetDefaultMemPool);
	check_use(0);
	SUPPORTED(cuMemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED));
	expect_free_of_charge(pool);
}

static void run_host_current(void)
{
	CUmemLocation where = host;
	CUmemoryPool pool;

	NEED(cuMemGetMemPool);
	check_use(0);
	SUPPORTED(cuMemGetMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED));
	expect_free_of_charge(pool);
}

const struct path paths_seen[] = {
	{ "seen-pool-trim", run_trim, BARE_BREAKS },
	{ "seen-pool-threshold", run_threshold, BARE_BREAKS },
	{ "seen-free-per-thread", run_free_per_thread, BARE_BREAKS },
	{ "seen-graph-trim", run_graph_trim, BARE_BREAKS },
	{ "graph-again", run_graph_again, BARE_PASSES },
	{ "pool-host", run_host, BARE_BREAKS },
	{ "pool-host-default", run_host_default, BARE_BREAKS },
	{ "pool-host-current", run_host_current, BARE_BREAKS },
	{ 0 },
};
const struct role roles_seen[] = { { "looker", role_looker }, { 0 } };
