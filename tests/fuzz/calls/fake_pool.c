/* Pools, and the memory of graphs, which is a pool for each card. */
#include "fuzz/calls/fake_internal.h"

enum { NODES_MAX = 3 };

static uint64_t round_to(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static CUresult grow_pool(struct fake_object *pool, uint64_t used)
{
	uint64_t reserved = round_to(used, fake.world->pool_step);
	CUresult rc = CUDA_SUCCESS;

	if (reserved > pool->reserved) {
		rc = fake_take(pool->card, reserved - pool->reserved, false);
		if (rc == CUDA_SUCCESS)
			pool->reserved = reserved;
	}
	return rc;
}

static void shrink_pool(struct fake_object *pool, uint64_t keep)
{
	uint64_t reserved = round_to(keep > pool->used ? keep : pool->used, fake.world->pool_step);

	if (reserved < pool->reserved) {
		fake_give(pool->card, pool->reserved - reserved, false);
		pool->reserved = reserved;
	}
}

void fake_put_back(struct fake_object *pooled)
{
	struct fake_object *pool = fake_find(FAKE_POOL, pooled->other);

	pool->used -= pooled->used;
	pooled->kind = FAKE_NONE;
	if (--pool->refs == 0 && pool->doomed) {
		shrink_pool(pool, 0);
		pool->kind = FAKE_NONE;
	}
}

static struct fake_object *pool_of(CUmemoryPool pool, int card)
{
	return pool == NULL ? &fake.graphs[card] : fake_find(FAKE_POOL, (uintptr_t)pool);
}

void fake_pool_state(CUmemoryPool pool, int card, uint64_t *reserved, uint64_t *used)
{
	const struct fake_object *o = pool_of(pool, card);

	*reserved = o != NULL ? o->reserved : 0;
	*used = o != NULL ? o->used : 0;
}

static CUresult fake_cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		if (fake.objects[i].kind == FAKE_POOL)
			shrink_pool(&fake.objects[i], 0);
	}
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	struct fake_object *o = fake_new(FAKE_POOL, props->location.id);

	*out = (CUmemoryPool)fake_handle(o); // NOLINT
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolDestroy(CUmemoryPool pool)
{
	struct fake_object *o = fake_find(FAKE_POOL, (uintptr_t)pool);

	if (o == NULL || o->doomed)
		return CUDA_ERROR_INVALID_VALUE;
	o->doomed = true;
	if (o->refs == 0) {
		shrink_pool(o, 0);
		o->kind = FAKE_NONE;
	}
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	struct fake_object *o = fake_find(FAKE_POOL, (uintptr_t)pool);

	if (o == NULL || o->doomed)
		return CUDA_ERROR_INVALID_VALUE;
	shrink_pool(o, keep < o->reserved ? keep : o->reserved);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *out)
{
	const struct fake_object *o = fake_find(FAKE_POOL, (uintptr_t)pool);

	if (o == NULL || o->doomed)
		return CUDA_ERROR_INVALID_VALUE;
	switch (which) {
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)out = o->reserved; break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)out = o->used; break;
	default: *(cuuint64_t *)out = 0; /* the release threshold */
	}
	return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
	if (fake.default_pool[device] == 0) {
		struct fake_object *o = fake_new(FAKE_POOL, device);

		fake.default_pool[device] = fake_handle(o);
	}
	*out = (CUmemoryPool)fake.default_pool[device]; // NOLINT
	return CUDA_SUCCESS;
}

CUmemoryPool fake_default_pool(int card)
{
	CUmemoryPool pool = NULL;

	return fake_cuDeviceGetDefaultMemPool(&pool, card) == CUDA_SUCCESS ? pool : NULL;
}

static CUresult fake_cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	struct fake_object *o = fake_find(FAKE_POOL, (uintptr_t)pool), *p;
	CUresult rc;

	(void)stream;
	if (bytes == 0 || o == NULL || o->doomed)
		return CUDA_ERROR_INVALID_VALUE;
	p = fake_new(FAKE_POOLED, o->card);
	p->used = round_to(bytes, 512);
	rc = grow_pool(o, o->used + p->used);
	if (rc != CUDA_SUCCESS) {
		p->kind = FAKE_NONE;
		return rc;
	}
	o->used += p->used;
	o->refs++;
	p->other = (uintptr_t)pool;
	*out = fake_handle(p);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	CUmemoryPool pool = NULL;
	int card = fake_current_card();
	CUresult rc = card < 0 ? CUDA_ERROR_INVALID_CONTEXT : fake_cuDeviceGetDefaultMemPool(&pool, card);

	return rc == CUDA_SUCCESS ? fake_cuMemAllocFromPoolAsync(out, bytes, pool, stream) : rc;
}

const struct fake_entry fake_pool_entries[] = {
	FAKE_ENTRY(cuStreamSynchronize),
	FAKE_ENTRY(cuMemPoolCreate),
	FAKE_ENTRY(cuMemPoolDestroy),
	FAKE_ENTRY(cuMemPoolTrimTo),
	FAKE_ENTRY(cuMemPoolGetAttribute),
	FAKE_ENTRY(cuDeviceGetDefaultMemPool),
	{ ENTRY_cuDeviceGetMemPool, (void *)fake_cuDeviceGetDefaultMemPool }, // NOLINT
	FAKE_ENTRY(cuMemAllocFromPoolAsync),
	FAKE_ENTRY(cuMemAllocAsync),
	{ 0, NULL },
};

/* A graph: its memory nodes, all of one card. Each launch takes what the nodes have at most at one time, and frees it
 * again; what was reserved for that stays. */
struct fake_graph {
	int card;
	unsigned count;
	uint64_t bytes[NODES_MAX], peak;
};
static struct fake_graph graphs[FAKE_OBJECTS];

static struct fake_graph *graph_of(const struct fake_object *o)
{
	return &graphs[o - fake.objects];
}

CUgraph fake_graph_new(int card, const uint64_t *bytes, unsigned count, bool together)
{
	struct fake_object *o = fake_new(FAKE_GRAPH, card);
	struct fake_graph *g;

	g = graph_of(o);
	*g = (struct fake_graph) { .card = card, .count = count };
	for (unsigned i = 0; i < count; i++) {
		uint64_t pages = round_to(bytes[i], FAKE_PAGE);

		g->bytes[i] = bytes[i];
		g->peak = together ? g->peak + pages : g->peak > pages ? g->peak : pages;
	}
	return (CUgraph)fake_handle(o); // NOLINT
}

void fake_graph_free(CUgraph graph)
{
	fake_find(FAKE_GRAPH, (uintptr_t)graph)->kind = FAKE_NONE;
}

/* A node is its graph and its number, from 1. */
static CUresult fake_cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count)
{
	const struct fake_object *o = fake_find(FAKE_GRAPH, (uintptr_t)graph);

	if (o == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; out != NULL && i < graph_of(o)->count && i < *count; i++)
		out[i] = (CUgraphNode)((uintptr_t)graph + i + 1); // NOLINT
	*count = graph_of(o)->count;
	return CUDA_SUCCESS;
}

static CUresult fake_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *out)
{
	(void)node;
	*out = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	return CUDA_SUCCESS;
}

static CUresult fake_cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	uintptr_t number = (uintptr_t)node % 16;
	const struct fake_graph *g = graph_of(fake_find(FAKE_GRAPH, (uintptr_t)node - number));

	*out = (CUDA_MEM_ALLOC_NODE_PARAMS) { .bytesize = g->bytes[number - 1] };
	out->poolProps.location = (CUmemLocation) { CU_MEM_LOCATION_TYPE_DEVICE, g->card };
	return CUDA_SUCCESS;
}

static CUresult fake_cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	const struct fake_object *from = fake_find(FAKE_GRAPH, (uintptr_t)graph);
	struct fake_object *o = fake_new(FAKE_EXEC, from->card);

	(void)flags;
	*graph_of(o) = *graph_of(from);
	*out = (CUgraphExec)fake_handle(o); // NOLINT
	return CUDA_SUCCESS;
}

static CUresult fake_cuGraphExecDestroy(CUgraphExec exec)
{
	struct fake_object *o = fake_find(FAKE_EXEC, (uintptr_t)exec);

	if (o == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	o->kind = FAKE_NONE;
	return CUDA_SUCCESS;
}

static CUresult fake_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	const struct fake_object *o = fake_find(FAKE_EXEC, (uintptr_t)exec);
	struct fake_object *pool;
	uint64_t peak;
	CUresult rc = CUDA_SUCCESS;

	(void)stream;
	if (o == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pool = &fake.graphs[o->card];
	peak = graph_of(o)->peak;
	if (peak > pool->reserved) {
		rc = fake_take(o->card, peak - pool->reserved, false);
		if (rc == CUDA_SUCCESS)
			pool->reserved = peak;
	}
	return rc;
}

static CUresult fake_cuDeviceGraphMemTrim(CUdevice device)
{
	struct fake_object *pool = &fake.graphs[device];

	if (pool->reserved != 0)
		fake_give(device, pool->reserved, false);
	pool->reserved = 0;
	return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute which, void *out)
{
	const struct fake_object *pool = &fake.graphs[device];

	*(cuuint64_t *)out = which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? pool->reserved : 0;
	return CUDA_SUCCESS;
}

const struct fake_entry fake_graph_entries[] = {
	FAKE_ENTRY(cuGraphGetNodes),
	FAKE_ENTRY(cuGraphNodeGetType),
	FAKE_ENTRY(cuGraphMemAllocNodeGetParams),
	FAKE_ENTRY(cuGraphInstantiateWithFlags),
	FAKE_ENTRY(cuGraphExecDestroy),
	FAKE_ENTRY(cuGraphLaunch),
	{ ENTRY_cuGraphUpload, (void *)fake_cuGraphLaunch }, // NOLINT
	FAKE_ENTRY(cuDeviceGraphMemTrim),
	FAKE_ENTRY(cuDeviceGetGraphMemAttribute),
	{ 0, NULL },
};
