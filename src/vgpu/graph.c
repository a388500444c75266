/* A graph's memory nodes are counted when it is instantiated: the sum of what they ask for is more than a launch needs,
 * where nodes free before others allocate. So the first launch must fit with the sum; from then on it counts what that
 * launch was seen to need.
 *
 * Child graphs with memory nodes are those that were moved into their parents; bodies of conditional nodes have none,
 * and an update of an instantiated graph cannot change any: rules of the driver. */
#include "vgpu/graph.h"

#include <sys/mman.h>

#include "vgpu/booking.h"
#include "vgpu/hooks.h"

enum { DEEPEST_CHILD = 64 };

struct need {
	uint64_t bytes[HM_MAX_CARDS]; /* by device */
	uint64_t devices;             /* a bit for each */
};

static bool sum_up(CUgraph graph, struct need *n, unsigned depth);

static void add_alloc(struct need *n, CUgraphNode node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p;
	uint64_t pages;

	if (REAL(cuGraphMemAllocNodeGetParams)(node, &p) != CUDA_SUCCESS || p.poolProps.location.id < 0 ||
	    p.poolProps.location.id >= HM_MAX_CARDS || p.bytesize > REGION_MAX_BYTES)
		return;
	pages = (p.bytesize + VGPU_PAGE_BYTES - 1) / VGPU_PAGE_BYTES * VGPU_PAGE_BYTES;
	n->bytes[p.poolProps.location.id] += pages;
	n->devices |= UINT64_C(1) << p.poolProps.location.id;
}

static bool add_node(struct need *n, CUgraphNode node, unsigned depth)
{
	CUgraphNodeType type;
	CUgraph child;

	if (REAL(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS)
		return true;
	if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		add_alloc(n, node);
	if (type != CU_GRAPH_NODE_TYPE_GRAPH || REAL(cuGraphChildGraphNodeGetGraph)(node, &child) != CUDA_SUCCESS)
		return true;
	return depth < DEEPEST_CHILD && sum_up(child, n, depth + 1);
}

/* False: no memory to look, or children of children without end. */
static bool sum_up(CUgraph graph, struct need *n, unsigned depth)
{
	CUgraphNode *nodes;
	size_t count = 0, bytes;
	bool good = true;

	if (REAL(cuGraphGetNodes)(graph, NULL, &count) != CUDA_SUCCESS || count == 0)
		return true;
	bytes = count * sizeof(CUgraphNode);
	nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nodes == MAP_FAILED)
		return false;
	if (REAL(cuGraphGetNodes)(graph, nodes, &count) == CUDA_SUCCESS) {
		for (size_t i = 0; good && i < HM_MIN(count, bytes / sizeof(CUgraphNode)); i++)
			good = add_node(n, nodes[i], depth);
	}
	munmap(nodes, bytes);
	return good;
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
	}
	return true;
}

bool graph_need_of(struct vgpu *v, CUgraphExec exec, CUdevice device, struct graph_seen *out)
{
	uint64_t key = key_of(exec, (unsigned)device);
	const struct record *r = track_hold(&v->track, TRACK_GRAPH, key);

	if (r == NULL)
		return false;
	*out = (struct graph_seen) { r->bytes, r->refs };
	track_release(&v->track, TRACK_GRAPH, key);
	return true;
}

void graph_learn(struct vgpu *v, CUgraphExec exec, CUdevice device, const struct graph_seen *seen)
{
	uint64_t key = key_of(exec, (unsigned)device);
	struct record *r = track_hold(&v->track, TRACK_GRAPH, key);

	if (r == NULL)
		return;
	r->bytes = HM_MIN(r->bytes, seen->bytes);
	r->refs = seen->epoch;
	track_release(&v->track, TRACK_GRAPH, key);
}

struct instantiation {
	struct vgpu *v; /* NULL: no limits, or the graph has no memory nodes */
	struct need need;
	struct graph_flight flights[HM_MAX_CARDS];
	uint64_t open; /* devices of the flights: one that uploads takes its memory at once */
};

static void close_all(struct instantiation *i)
{
	struct graph_seen seen;

	for (unsigned d = 0; i->open >> d != 0; d++) {
		if ((i->open >> d & 1) != 0)
			graph_memory_close(i->v, &i->flights[d], &seen);
	}
}

/* Before the driver is asked. */
static CUresult begin(struct instantiation *i, CUgraph graph, unsigned long long flags)
{
	*i = (struct instantiation) { .v = vgpu_get() };
	if (i->v == NULL)
		return CUDA_SUCCESS;
	if (!sum_up(graph, &i->need, 0))
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_fetch_or(&i->v->graph_devices, i->need.devices);
	if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0)
		return CUDA_SUCCESS;
	for (int d = 0; i->need.devices >> d != 0; d++) {
		if ((i->need.devices >> d & 1) == 0)
			continue;
		if (!graph_memory_open(i->v, d, i->need.bytes[d], 0, &i->flights[d])) {
			close_all(i);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		i->open |= UINT64_C(1) << d;
	}
	return CUDA_SUCCESS;
}

static CUresult finish(struct instantiation *i, CUresult rc, CUgraphExec *out)
{
	if (i->v == NULL)
		return rc;
	close_all(i);
	if (rc != CUDA_SUCCESS || remember(i->v, *out, &i->need))
		return rc;
	cuGraphExecDestroy(*out);
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A call that instantiates `graph` into `out`. */
#define INSTANTIATES(name, params, args, flags)                                                                        \
	VGPU_EXPORT CUresult name params                                                                               \
	{                                                                                                              \
		struct instantiation i;                                                                                \
		CUresult rc = begin(&i, graph, flags);                                                                 \
                                                                                                                       \
		return rc == CUDA_SUCCESS ? finish(&i, REAL(name) args, out) : rc;                                     \
	}

INSTANTIATES(cuGraphInstantiate,
	     (CUgraphExec * out, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	     (out, graph, error_node, log, log_bytes), 0)
INSTANTIATES(cuGraphInstantiate_v2,
	     (CUgraphExec * out, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	     (out, graph, error_node, log, log_bytes), 0)
INSTANTIATES(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
	     (out, graph, flags), flags)
INSTANTIATES(cuGraphInstantiateWithParams, (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	     (out, graph, params), params != NULL ? params->flags : 0)
INSTANTIATES(cuGraphInstantiateWithParams_ptsz,
	     (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), (out, graph, params),
	     params != NULL ? params->flags : 0)

VGPU_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct vgpu *v = vgpu_get();

	/* Before: its address may be another graph's the next moment. A driver that refuses does not know it. */
	if (v != NULL && exec != NULL && v->graph_devices != 0)
		forget(v, exec);
	return REAL(cuGraphExecDestroy)(exec);
}
