/* Steps: contexts, modules, pools, graphs, queries. */
#include "fuzz/calls/model.h"

static void drop(struct object *o)
{
	o->kind = OBJECT_NONE;
}

static struct object *primary_of(int card)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct object *o = &me.m.objects[i];

		if (o->kind == OBJECT_CONTEXT && o->card == card && o->other != 0)
			return o;
	}
	return NULL;
}

static void set_current(uint64_t context)
{
	me.m.current = context;
	fake_set_current((CUcontext)context); // NOLINT
}

/* What a call that ended a context has ended with it. */
void forget_context(uint64_t context)
{
	struct object *ends = object_by_handle(OBJECT_CONTEXT, context);
	int card = ends->card;
	bool last = true;

	drop(ends);
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct object *o = &me.m.objects[i];

		if (o->kind == OBJECT_NONE)
			continue;
		last = last && !(o->kind == OBJECT_CONTEXT && o->card == card);
		if (o->context != context)
			continue;
		if (o->kind == OBJECT_POINTER && o->bytes < FAKE_PAGE)
			pages_change(o, -1);
		drop(o);
	}
	if (last)
		me.m.graphs[card].reserved = 0;
	if (me.m.current == context)
		me.m.current = 0;
	pools_looked_at();
}

static void step_context_create(void)
{
	int card = (int)random_below(FAKE_CARDS);
	struct object *o = object_new(OBJECT_CONTEXT, card);
	CUcontext context = NULL;
	uint64_t current = me.m.current;
	CUresult rc;

	if (o == NULL)
		return;
	o->kind = OBJECT_NONE;
	rc = random_below(2) ? cuCtxCreate_v2(&context, 0, card) : cuCtxCreate_v4(&context, NULL, 0, card);
	if (!granted(rc, card, me.world->nvml ? FAKE_CONTEXT_BYTES : 0)) {
		/* One that was made and ended again has left none current. */
		set_current(current);
		return;
	}
	o->kind = OBJECT_CONTEXT;
	o->handle = me.m.current = (uintptr_t)context;
}

static void step_context_destroy(void)
{
	struct object *o = object_any(OBJECT_CONTEXT);

	if (o == NULL || o->other != 0)
		return;
	expect(cuCtxDestroy_v2((CUcontext)o->handle), CUDA_SUCCESS); // NOLINT
	forget_context(o->handle);
}

static void step_context_switch(void)
{
	struct object *o = object_any(OBJECT_CONTEXT);

	set_current(o != NULL ? o->handle : 0);
}

static void step_primary_retain(void)
{
	int card = (int)random_below(FAKE_CARDS);
	struct object *o = primary_of(card), *fresh = o == NULL ? object_new(OBJECT_CONTEXT, card) : NULL;
	CUcontext context = NULL;
	CUresult rc;

	if (o == NULL && fresh == NULL)
		return;
	if (fresh != NULL)
		fresh->kind = OBJECT_NONE;
	rc = cuDevicePrimaryCtxRetain(&context, card);
	if (o == NULL && granted(rc, card, me.world->nvml ? FAKE_CONTEXT_BYTES : 0)) {
		*fresh = (struct object) { .kind = OBJECT_CONTEXT, .card = card, .other = 1 };
		fresh->handle = (uintptr_t)context;
		o = fresh;
	}
	if (o != NULL)
		me.m.primary_refs[card]++;
}

static void release_primary(int card)
{
	struct object *o = primary_of(card);

	expect(cuDevicePrimaryCtxRelease_v2(card), CUDA_SUCCESS);
	if (--me.m.primary_refs[card] == 0)
		forget_context(o->handle);
}

static void step_primary_release(void)
{
	int card = (int)random_below(FAKE_CARDS);

	if (primary_of(card) != NULL)
		release_primary(card);
}

static void step_primary_reset(void)
{
	int card = (int)random_below(FAKE_CARDS);
	struct object *o = primary_of(card);

	expect(cuDevicePrimaryCtxReset_v2(card), CUDA_SUCCESS);
	me.m.primary_refs[card] = 0;
	if (o != NULL)
		forget_context(o->handle);
}

static void step_module_load(void)
{
	int card = current_card();
	uint64_t bytes = 65536 * (1 + random_below(40));
	struct object *o = card >= 0 ? object_new(OBJECT_MODULE, card) : NULL;
	CUmodule module = NULL;
	CUresult rc;

	if (o == NULL)
		return;
	rc = cuModuleLoadData(&module, (const void *)bytes); // NOLINT
	if (granted(rc, card, me.world->nvml ? bytes : 0)) {
		o->handle = (uintptr_t)module;
		o->bytes = bytes;
		o->context = me.m.current;
	} else {
		drop(o);
	}
}

static void unload(struct object *o)
{
	expect(cuModuleUnload((CUmodule)o->handle), CUDA_SUCCESS); // NOLINT
	drop(o);
}

static void step_module_unload(void)
{
	struct object *o = object_any(OBJECT_MODULE);

	if (o != NULL)
		unload(o);
}

static void step_pool_create(void)
{
	int card = (int)random_below(FAKE_CARDS);
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, card } };
	struct object *o = object_new(OBJECT_POOL, card);
	CUmemoryPool pool;

	if (o == NULL)
		return;
	expect(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	o->handle = (uintptr_t)pool;
}

static bool is_default(const struct object *pool)
{
	return pool->handle == me.m.default_pool[pool->card];
}

static void bury_pool(struct object *pool)
{
	if (pool->doomed && pool->refs == 0)
		drop(pool);
}

static void destroy_pool(struct object *pool)
{
	expect(cuMemPoolDestroy((CUmemoryPool)pool->handle), CUDA_SUCCESS); // NOLINT
	pool->doomed = true;
	bury_pool(pool);
}

static void step_pool_destroy(void)
{
	struct object *pool = object_any(OBJECT_POOL);

	if (pool != NULL && !pool->doomed && !is_default(pool))
		destroy_pool(pool);
}

static uint64_t pool_at_rest(const struct object *pool, uint64_t keep)
{
	uint64_t needs = round_up(HM_MAX(pool->used, keep), me.world->pool_step);

	return HM_MIN(pool->reserved, needs);
}

static void step_pool_trim(void)
{
	struct object *pool = object_any(OBJECT_POOL);
	uint64_t keep = random_below((uint32_t)(8 * FAKE_PAGE));

	if (pool == NULL || pool->doomed)
		return;
	expect(cuMemPoolTrimTo((CUmemoryPool)pool->handle, keep), CUDA_SUCCESS); // NOLINT
	pool->reserved = pool->looked = pool_at_rest(pool, keep);
}

/* The pool that cuMemAllocAsync uses is made by the driver. */
static struct object *default_pool(int card)
{
	struct object *pool = object_by_handle(OBJECT_POOL, me.m.default_pool[card]);

	if (me.m.default_pool[card] != 0 && pool != NULL)
		return pool;
	pool = object_new(OBJECT_POOL, card);
	if (pool == NULL)
		return NULL;
	pool->handle = me.m.default_pool[card] = (uintptr_t)fake_default_pool(card);
	return pool;
}

static void take_from(struct object *pool, struct object *o, uint64_t bytes, bool by_default)
{
	uint64_t used = pool->used + round_up(bytes, 512), unused = pool->reserved - pool->used;
	uint64_t grown = HM_MAX(pool->reserved, round_up(used, me.world->pool_step));
	/* Before it has grown a pool may be one whose step is the largest. */
	uint64_t needs = HM_MAX(grown - pool->reserved, unused >= bytes ? 0 : round_up(bytes, 16 * FAKE_PAGE));
	CUdeviceptr ptr = 0;
	CUresult rc = by_default ? cuMemAllocAsync(&ptr, bytes, NULL)
				 : cuMemAllocFromPoolAsync(&ptr, bytes, (CUmemoryPool)pool->handle, NULL); // NOLINT

	if (granted(rc, pool->card, needs)) {
		o->handle = ptr;
		o->bytes = round_up(bytes, 512);
		o->other = pool->handle;
		pool->used = used;
		pool->refs++;
		pool->reserved = pool->looked = grown;
	} else {
		/* Refused for what the pool grew by more than was asked: it keeps that. */
		fake_pool_state((CUmemoryPool)pool->handle, pool->card, &pool->reserved, &used); // NOLINT
		pool->looked = HM_MAX(pool->looked, pool->reserved);
		drop(o);
	}
}

static void step_pool_alloc(void)
{
	int card = current_card();
	bool by_default = random_below(2);
	struct object *pool = card < 0 ? NULL : by_default ? default_pool(card) : object_any(OBJECT_POOL);
	struct object *o;

	if (pool == NULL || pool->doomed)
		return;
	o = object_new(OBJECT_POOLED, pool->card);
	if (o != NULL)
		take_from(pool, o, 1 + random_below((uint32_t)(4 * FAKE_PAGE)), by_default);
}

void free_pooled(struct object *o)
{
	struct object *pool = object_by_handle(OBJECT_POOL, o->other);

	expect(random_below(2) ? cuMemFreeAsync(o->handle, NULL) : cuMemFree_v2(o->handle), CUDA_SUCCESS);
	pool->used -= o->bytes;
	pool->refs--;
	if (!pool->doomed) /* a driver tells nothing of a pool that was destroyed */
		pool->looked = pool->reserved;
	drop(o);
	bury_pool(pool);
}

static void step_pool_free(void)
{
	struct object *o = object_any(OBJECT_POOLED);

	if (o != NULL)
		free_pooled(o);
}

static void step_synchronize(void)
{
	expect(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].kind == OBJECT_POOL)
			me.m.objects[i].reserved = pool_at_rest(&me.m.objects[i], 0);
	}
}

static void step_graph_instantiate(void)
{
	int card = (int)random_below(FAKE_CARDS);
	struct object *o = object_new(OBJECT_EXEC, card);
	unsigned count = random_below(4);
	bool together = random_below(2);
	uint64_t bytes[3];
	CUgraphExec exec;
	CUgraph graph;

	if (o == NULL)
		return;
	for (unsigned i = 0; i < count; i++) {
		bytes[i] = 1 + random_below((uint32_t)(3 * FAKE_PAGE));
		o->bytes += round_up(bytes[i], FAKE_PAGE);
		o->used = together ? o->bytes : HM_MAX(o->used, round_up(bytes[i], FAKE_PAGE));
	}
	graph = fake_graph_new(card, bytes, count, together);
	expect(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	fake_graph_free(graph);
	o->handle = (uintptr_t)exec;
}

static bool has_context(int card)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].kind == OBJECT_CONTEXT && me.m.objects[i].card == card)
			return true;
	}
	return false;
}

static void step_graph_launch(void)
{
	struct object *o = object_any(OBJECT_EXEC);
	struct object *held = o != NULL ? &me.m.graphs[o->card] : NULL;
	CUresult rc;

	if (o == NULL || !has_context(o->card))
		return;
	rc = random_below(4) ? cuGraphLaunch((CUgraphExec)o->handle, NULL)  // NOLINT
			     : cuGraphUpload((CUgraphExec)o->handle, NULL); // NOLINT
	if (!granted(rc, o->card, o->bytes > held->reserved ? o->bytes - held->reserved : 0))
		return;
	held->reserved = HM_MAX(held->reserved, o->used);
	if (held->reserved != 0)
		o->bytes = HM_MIN(o->bytes, held->reserved); /* what that launch was seen to need */
}

static void step_graph_destroy(void)
{
	struct object *o = object_any(OBJECT_EXEC);

	if (o == NULL)
		return;
	expect(cuGraphExecDestroy((CUgraphExec)o->handle), CUDA_SUCCESS); // NOLINT
	drop(o);
}

static void step_graph_trim(void)
{
	int card = (int)random_below(FAKE_CARDS);

	expect(cuDeviceGraphMemTrim(card), CUDA_SUCCESS);
	me.m.graphs[card].reserved = 0;
}

static void step_query(void)
{
	int card = current_card();
	size_t free = 0, total = 0;
	uint64_t used = 0;

	if (card < 0) {
		expect(cuMemGetInfo_v2(&free, &total), CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	expect(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	pools_looked_at();
	check_books();
	check_sum(card);
	for (unsigned i = 0; i < FAKE_PROCESSES; i++)
		used += me.world->processes[i].charged[card];
	if (me.alone && (total != me.world->limit[card] || free != (used < total ? total - used : 0)))
		fail("shown are %zu of %zu bytes free, where %lu are used", free, total, used);
}

/* From nothing current to nothing held. */
void release_all(void)
{
	struct object *o;

	release_memory();
	while ((o = object_any(OBJECT_POOLED)) != NULL)
		free_pooled(o);
	step_synchronize();
	for (unsigned i = 0; i < OBJECTS; i++) {
		o = &me.m.objects[i];
		if (o->kind == OBJECT_POOL && !is_default(o))
			destroy_pool(o);
		else if (o->kind == OBJECT_MODULE)
			unload(o);
	}
	while (object_any(OBJECT_EXEC) != NULL)
		step_graph_destroy();
	for (int card = 0; card < FAKE_CARDS; card++) {
		expect(cuDeviceGraphMemTrim(card), CUDA_SUCCESS);
		me.m.graphs[card].reserved = 0;
		while (primary_of(card) != NULL)
			release_primary(card);
	}
	while ((o = object_any(OBJECT_CONTEXT)) != NULL) {
		expect(cuCtxDestroy_v2((CUcontext)o->handle), CUDA_SUCCESS); // NOLINT
		forget_context(o->handle);
	}
	pools_looked_at();
}

const struct step device_steps[] = {
	{ "context create", 3, step_context_create },
	{ "context destroy", 2, step_context_destroy },
	{ "context switch", 8, step_context_switch },
	{ "primary retain", 5, step_primary_retain },
	{ "primary release", 3, step_primary_release },
	{ "primary reset", 1, step_primary_reset },
	{ "module load", 4, step_module_load },
	{ "module unload", 3, step_module_unload },
	{ "pool create", 2, step_pool_create },
	{ "pool destroy", 2, step_pool_destroy },
	{ "pool trim", 3, step_pool_trim },
	{ "pool alloc", 20, step_pool_alloc },
	{ "pool free", 18, step_pool_free },
	{ "synchronize", 5, step_synchronize },
	{ "graph instantiate", 3, step_graph_instantiate },
	{ "graph launch", 10, step_graph_launch },
	{ "graph destroy", 3, step_graph_destroy },
	{ "graph trim", 1, step_graph_trim },
	{ "query", 4, step_query },
	{ NULL, 0, NULL },
};
