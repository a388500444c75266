/* A graph's memory nodes are counted when it is instantiated: the sum of what they ask for is more than a launch needs,
 * where nodes free before others allocate. So the first launch must fit with the sum; from then on it counts what that
 * launch was seen to need. */
#include "vgpu/graph.h"

#include <sys/mman.h>

#include "vgpu/booking.h"
#include "vgpu/hooks.h"
#include "vgpu/pool.h"

struct graph_booking {
	struct vgpu *v; /* NULL: nothing is booked */
	CUgraphExec exec;
	uint64_t booked[HM_MAX_CARDS], used[HM_MAX_CARDS]; /* by device: charged; in use before the launch */
	uint64_t devices;                                  /* a bit for each that is booked */
};

struct need {
	uint64_t bytes[HM_MAX_CARDS]; /* by device */
	uint64_t devices;
};

static void add_node(struct need *n, CUgraphNode node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p;
	CUgraphNodeType type;
	uint64_t pages;

	if (REAL(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    REAL(cuGraphMemAllocNodeGetParams)(node, &p) != CUDA_SUCCESS || p.poolProps.location.id < 0 ||
	    p.poolProps.location.id >= HM_MAX_CARDS || p.bytesize > REGION_MAX_BYTES)
		return;
	pages = (p.bytesize + VGPU_PAGE_BYTES - 1) / VGPU_PAGE_BYTES * VGPU_PAGE_BYTES;
	n->bytes[p.poolProps.location.id] += pages;
	n->devices |= UINT64_C(1) << p.poolProps.location.id;
}

/* False: no memory to look. */
static bool sum_up(CUgraph graph, struct need *n)
{
	CUgraphNode *nodes;
	size_t count = 0, bytes;

	*n = (struct need) { .devices = 0 };
	if (REAL(cuGraphGetNodes)(graph, NULL, &count) != CUDA_SUCCESS || count == 0)
		return true;
	bytes = count * sizeof(CUgraphNode);
	nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nodes == MAP_FAILED)
		return false;
	if (REAL(cuGraphGetNodes)(graph, nodes, &count) == CUDA_SUCCESS) {
		for (size_t i = 0; i < HM_MIN(count, bytes / sizeof(CUgraphNode)); i++)
			add_node(n, nodes[i]);
	}
	munmap(nodes, bytes);
	return true;
}

/* User space ends below 2^56. */
static uint64_t key_of(CUgraphExec exec, unsigned device)
{
	return (uintptr_t)exec | (uint64_t)(device + 1) << 56;
}

static void forget(struct vgpu *v, CUgraphExec exec)
{
	uint64_t devices = v->graph_devices;

	for (unsigned i = 0; devices >> i != 0; i++) {
		if ((devices >> i & 1) != 0)
			track_free(&v->track, track_take(&v->track, TRACK_GRAPH, key_of(exec, i)));
	}
}

static bool remember(struct vgpu *v, CUgraphExec exec, const struct need *n)
{
	for (unsigned i = 0; n->devices >> i != 0; i++) {
		struct record *r = (n->devices >> i & 1) != 0 ? track_new(&v->track) : NULL;

		if ((n->devices >> i & 1) == 0)
			continue;
		if (r == NULL)
			return false;
		r->kind = TRACK_GRAPH;
		r->key = key_of(exec, i);
		r->bytes = n->bytes[i];
		track_put(&v->track, r);
		atomic_fetch_or(&v->graph_devices, UINT64_C(1) << i);
	}
	return true;
}

/* An instantiation that uploads has taken its memory already. */
static bool settle_all(struct vgpu *v, uint64_t devices)
{
	bool fits = true;

	for (int i = 0; devices >> i != 0; i++) {
		if ((devices >> i & 1) != 0)
			fits = pool_settle_graphs(v, i, 0) && fits;
	}
	return fits;
}

static CUresult instantiated(CUresult rc, CUgraphExec *out, CUgraph graph)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct need n;

	if (v == NULL)
		return rc;
	if (sum_up(graph, &n) && remember(v, *out, &n) && settle_all(v, n.devices))
		return rc;
	cuGraphExecDestroy(*out);
	for (int i = 0; n.devices >> i != 0; i++) {
		if ((n.devices >> i & 1) != 0)
			cuDeviceGraphMemTrim(i);
	}
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log,
					size_t log_bytes)
{
	return instantiated(REAL(cuGraphInstantiate)(out, graph, error_node, log, log_bytes), out, graph);
}

VGPU_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log,
					   size_t log_bytes)
{
	return instantiated(REAL(cuGraphInstantiate_v2)(out, graph, error_node, log, log_bytes), out, graph);
}

VGPU_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	return instantiated(REAL(cuGraphInstantiateWithFlags)(out, graph, flags), out, graph);
}

VGPU_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph,
						  CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return instantiated(REAL(cuGraphInstantiateWithParams)(out, graph, params), out, graph);
}

VGPU_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph,
						       CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return instantiated(REAL(cuGraphInstantiateWithParams_ptsz)(out, graph, params), out, graph);
}

VGPU_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct vgpu *v = vgpu_get();

	/* Before: its address may be another graph's the next moment. A driver that refuses does not know it. */
	if (v != NULL && exec != NULL && v->graph_devices != 0)
		forget(v, exec);
	return REAL(cuGraphExecDestroy)(exec);
}

/* What the graph's next launch needs of a device; 0: it has no memory nodes there. */
static uint64_t need_of(struct vgpu *v, CUgraphExec exec, unsigned device)
{
	struct record *r = track_hold(&v->track, TRACK_GRAPH, key_of(exec, device));
	uint64_t bytes = r != NULL ? r->bytes : 0;

	if (r != NULL)
		track_release(&v->track, TRACK_GRAPH, key_of(exec, device));
	return bytes;
}

static void learn(struct vgpu *v, CUgraphExec exec, unsigned device, uint64_t bytes)
{
	struct record *r = track_hold(&v->track, TRACK_GRAPH, key_of(exec, device));

	if (r == NULL)
		return;
	r->bytes = HM_MIN(r->bytes, bytes);
	track_release(&v->track, TRACK_GRAPH, key_of(exec, device));
}

/* What is reserved and not in use serves the launch first. */
static CUresult book_device(struct graph_booking *g, int device, uint64_t need)
{
	struct vgpu_card *card = vgpu_card_of(g->v, device);
	uint64_t reserved = 0;

	if (card == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool_graph_memory(device, &reserved, &g->used[device]);
	reserved = reserved > g->used[device] ? reserved - g->used[device] : 0;
	g->booked[device] = need > reserved ? need - reserved : 0;
	if (!booking_charge(g->v, card, g->booked[device]))
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->devices |= UINT64_C(1) << device;
	return CUDA_SUCCESS;
}

static void cancel(struct graph_booking *g)
{
	for (int i = 0; g->devices >> i != 0; i++) {
		if ((g->devices >> i & 1) != 0)
			vgpu_uncharge(g->v, vgpu_card_of(g->v, i), g->booked[i]);
	}
}

static CUresult graph_open(struct graph_booking *g, CUgraphExec exec, CUstream stream, bool per_thread)
{
	struct vgpu *v = vgpu_get();
	uint64_t devices = v != NULL ? v->graph_devices : 0;

	g->v = NULL;
	g->devices = 0;
	if (HM_LIKELY(devices == 0) || exec == NULL || stream_is_capturing(stream, per_thread))
		return CUDA_SUCCESS;
	g->v = v;
	g->exec = exec;
	for (int i = 0; devices >> i != 0; i++) {
		uint64_t need = (devices >> i & 1) != 0 ? need_of(v, exec, (unsigned)i) : 0;
		CUresult rc = need != 0 ? book_device(g, i, need) : CUDA_SUCCESS;

		if (rc != CUDA_SUCCESS) {
			cancel(g);
			return rc;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult graph_close(struct graph_booking *g, CUresult rc)
{
	if (g->v == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		cancel(g);
		return rc;
	}
	for (int i = 0; g->devices >> i != 0; i++) {
		uint64_t reserved = 0, used = 0;

		if ((g->devices >> i & 1) == 0)
			continue;
		pool_settle_graphs(g->v, i, g->booked[i]);
		if (pool_graph_memory(i, &reserved, &used) && reserved > g->used[i])
			learn(g->v, g->exec, (unsigned)i, reserved - g->used[i]);
	}
	return rc;
}

CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, false);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphLaunch)(exec, stream)) : rc;
}

CUresult graph_launch_ptsz(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, true);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphLaunch_ptsz)(exec, stream)) : rc;
}

VGPU_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, false);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphUpload)(exec, stream)) : rc;
}

VGPU_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, true);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphUpload_ptsz)(exec, stream)) : rc;
}

VGPU_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	CUresult rc = REAL(cuDeviceGraphMemTrim)(device);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL && v->graph_devices != 0)
		pools_refresh(v);
	return rc;
}
