/* Stream-ordered memory: the default pool, pools of one's own, both classes of streams. Drivers let a pool grow by 32
 * MiB. */
#include "books.h"
#include "fill.h"
#include "paths.h"
#include "views.h"

#define STEP (32 * MIB)

static CUmemoryPool pool;

static void need_pools(void)
{
	NEED(cuMemAllocAsync);
	check_use_with_pools();
}

static CUresult create_pool(int location)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { location, 0 } };

	return cuMemPoolCreate(&pool, &props);
}

static void make_pool(void)
{
	if (pool == NULL)
		OK(create_pool(CU_MEM_LOCATION_TYPE_DEVICE));
}

static CUresult take_async(uint64_t *out, size_t bytes)
{
	return cuMemAllocAsync((CUdeviceptr *)out, bytes, NULL);
}
static CUresult take_async_ptsz(uint64_t *out, size_t bytes)
{
	return cuMemAllocAsync_ptsz((CUdeviceptr *)out, bytes, NULL);
}
static CUresult take_from(uint64_t *out, size_t bytes)
{
	return cuMemAllocFromPoolAsync((CUdeviceptr *)out, bytes, pool, NULL);
}
static CUresult take_from_ptsz(uint64_t *out, size_t bytes)
{
	return cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)out, bytes, pool, NULL);
}
static CUresult give_async(uint64_t what)
{
	return cuMemFreeAsync(what, NULL);
}
static CUresult give_async_ptsz(uint64_t what)
{
	return cuMemFreeAsync_ptsz(what, NULL);
}
static CUresult give_plain(uint64_t what)
{
	return cuMemFree_v2(what);
}

static void fill_pool(CUresult (*take)(uint64_t *, size_t), CUresult (*give)(uint64_t), void (*before)(void))
{
	need_pools();
	fill_and_empty_here(0, &(struct way) { .take = take, .give = give, .before = before, .step = STEP });
}

static void run_async(void)
{
	fill_pool(take_async, give_async, NULL);
}
static void run_async_ptsz(void)
{
	NEED(cuMemAllocAsync_ptsz);
	fill_pool(take_async_ptsz, give_async_ptsz, NULL);
}
static void run_async_freed_plainly(void)
{
	fill_pool(take_async, give_plain, NULL);
}
static void run_from_pool(void)
{
	fill_pool(take_from, give_async, make_pool);
}
static void run_from_pool_ptsz(void)
{
	NEED(cuMemAllocFromPoolAsync_ptsz);
	fill_pool(take_from_ptsz, give_async_ptsz, make_pool);
}

/* A pool of one's own as the device's current one; the destroyed pool gives everything back. */
static void set_current(void)
{
	make_pool();
	OK(cuDeviceSetMemPool(0, pool));
}

static void run_current_pool(void)
{
	fill_pool(take_async, give_async, set_current);
}

/* The same by the call of CUDA 13. */
static void set_current_13(void)
{
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };

	make_pool();
	SUPPORTED(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
}

static void run_current_pool_13(void)
{
	NEED(cuMemSetMemPool);
	fill_pool(take_async, give_async, set_current_13);
}

/* The pool that is asked for by name, by each query of CUDA 11 and 13. */
static CUresult named_default(void)
{
	return cuDeviceGetDefaultMemPool(&pool, 0);
}
static CUresult named_current(void)
{
	return cuDeviceGetMemPool(&pool, 0);
}
static CUresult named_default_13(void)
{
	return cuMemGetDefaultMemPool(&pool, &(CUmemLocation) { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				      CU_MEM_ALLOCATION_TYPE_PINNED);
}
static CUresult named_current_13(void)
{
	return cuMemGetMemPool(&pool, &(CUmemLocation) { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
			       CU_MEM_ALLOCATION_TYPE_PINNED);
}

static void named(CUresult (*query)(void))
{
	need_pools();
	SUPPORTED(query());
	fill_and_empty_here(0, &(struct way) { .take = take_from, .give = give_async, .step = STEP });
}

static void run_named_default(void)
{
	named(named_default);
}
static void run_named_current(void)
{
	named(named_current);
}
static void run_named_default_13(void)
{
	NEED(cuMemGetDefaultMemPool);
	named(named_default_13);
}
static void run_named_current_13(void)
{
	NEED(cuMemGetMemPool);
	named(named_current_13);
}

/* Pools of the host's memory are none of the card's. */
static void host_pool(CUresult (*query)(void))
{
	CUdeviceptr p;

	need_pools();
	CUresult rc = query();

	if (rc != CUDA_SUCCESS)
		check_not_available("this driver has no pools of host memory: %d", rc);
	size_t start = views_match_books(0);

	OK(cuMemAllocFromPoolAsync(&p, fill_piece(), pool, NULL));
	HOLDS(check_same(views_match_books(0), start), "the host's memory is charged %zu", views_used(0) - start);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	HOLDS(check_same(views_match_books(0), start), "after the free: %zu", views_used(0) - start);
}
static CUresult host_default(void)
{
	return cuMemGetDefaultMemPool(&pool, &(CUmemLocation) { CU_MEM_LOCATION_TYPE_HOST, 0 },
				      CU_MEM_ALLOCATION_TYPE_PINNED);
}
static CUresult host_current(void)
{
	return cuMemGetMemPool(&pool, &(CUmemLocation) { CU_MEM_LOCATION_TYPE_HOST, 0 }, CU_MEM_ALLOCATION_TYPE_PINNED);
}
static CUresult host_created(void)
{
	return create_pool(CU_MEM_LOCATION_TYPE_HOST);
}

static void run_host_default(void)
{
	NEED(cuMemGetDefaultMemPool);
	host_pool(host_default);
}
static void run_host_current(void)
{
	NEED(cuMemGetMemPool);
	host_pool(host_current);
}
static void run_host_created(void)
{
	host_pool(host_created);
}

static void keep_everything(CUmemoryPool p)
{
	OK(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &(cuuint64_t) { UINT64_MAX }));
}

/* What a pool holds back is charged until it is trimmed. */
static void run_trim(void)
{
	uint64_t p[4];

	need_pools();
	make_pool();
	keep_everything(pool);
	size_t start = views_match_books(0), piece = HM_MAX(fill_piece() / STEP, (size_t)1) * STEP;

	for (int i = 0; i < 4; i++)
		OK(take_from(&p[i], piece));
	for (int i = 0; i < 4; i++)
		OK(give_async(p[i]));
	OK(cuCtxSynchronize());
	size_t kept = views_match_books(0);

	HOLDS(kept >= start + 4 * piece, "a pool that keeps 4 x %zu is charged %zu", piece, kept - start);
	OK(cuMemPoolTrimTo(pool, 2 * piece));
	size_t trimmed = views_match_books(0);

	HOLDS(trimmed < kept && trimmed >= start + 2 * piece, "after a trim to 2 pieces: %zu", trimmed - start);
	fill_expect_room(0);
	OK(cuMemPoolTrimTo(pool, 0));
	HOLDS(check_same(views_match_books(0), start), "after a trim to nothing: %zu", views_used(0) - start);
}

/* A pool that was told to let go (its threshold lowered) gives back at the next synchronisation. */
static void run_threshold(void)
{
	uint64_t p;

	need_pools();
	make_pool();
	keep_everything(pool);
	size_t start = views_match_books(0);

	OK(take_from(&p, 2 * STEP));
	OK(give_async(p));
	OK(cuCtxSynchronize());
	HOLDS(views_match_books(0) >= start + 2 * STEP, "a pool that keeps is not charged");
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &(cuuint64_t) { 0 }));
	OK(cuCtxSynchronize());
	OK(take_from(&p, 1024));
	OK(give_async(p));
	OK(cuCtxSynchronize());
	HOLDS(check_same(views_match_books(0), start), "a pool that lets go is still charged %zu",
	      views_used(0) - start);
	fill_expect_room(0);
}

/* A pool goes with all it kept. */
static void destroy(CUresult (*take)(uint64_t *, size_t), CUresult (*give)(uint64_t))
{
	uint64_t p;

	need_pools();
	size_t start = views_match_books(0);

	make_pool();
	keep_everything(pool);
	OK(take(&p, 2 * STEP));
	OK(give(p));
	OK(cuCtxSynchronize());
	HOLDS(views_match_books(0) >= start + 2 * STEP, "a pool that keeps is not charged");
	OK(cuMemPoolDestroy(pool));
	HOLDS(check_same(views_match_books(0), start), "a destroyed pool is still charged %zu", views_used(0) - start);
	fill_expect_room(0);
}

static void run_destroy(void)
{
	destroy(take_from, give_async);
}
static void run_destroy_ptsz(void)
{
	NEED(cuMemFreeAsync_ptsz);
	destroy(take_from_ptsz, give_async_ptsz);
}

const struct path paths_pool[] = {
	{ "async", run_async, BARE_BREAKS },
	{ "async-per-thread", run_async_ptsz, BARE_BREAKS },
	{ "async-freed-by-cuMemFree", run_async_freed_plainly, BARE_BREAKS },
	{ "pool", run_from_pool, BARE_BREAKS },
	{ "pool-per-thread", run_from_pool_ptsz, BARE_BREAKS },
	{ "pool-current", run_current_pool, BARE_BREAKS },
	{ "pool-current-13", run_current_pool_13, BARE_BREAKS },
	{ "pool-named-default", run_named_default, BARE_BREAKS },
	{ "pool-named-current", run_named_current, BARE_BREAKS },
	{ "pool-named-default-13", run_named_default_13, BARE_BREAKS },
	{ "pool-named-current-13", run_named_current_13, BARE_BREAKS },
	{ "pool-of-host-default", run_host_default, BARE_PASSES },
	{ "pool-of-host-current", run_host_current, BARE_PASSES },
	{ "pool-of-host-created", run_host_created, BARE_PASSES },
	{ "pool-trim", run_trim, BARE_BREAKS },
	{ "pool-threshold", run_threshold, BARE_BREAKS },
	{ "pool-destroy", run_destroy, BARE_BREAKS },
	{ "pool-destroy-per-thread", run_destroy_ptsz, BARE_BREAKS },
	{ 0 },
};
