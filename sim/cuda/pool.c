#include "sim/cuda/pool.h"

#include <stdlib.h>

#include "sim/cuda/handles.h"
#include "sim/cuda/space.h"

/* A pool grows in steps of 32 MiB, as the driver's do; what asks for more gets a chunk of its own, in whole pages. */
#define CHUNK_BYTES ((uint64_t)32 << 20)

static struct link pools = { &pools, &pools };

static CUmemoryPool pool_new(unsigned device, bool is_default)
{
	struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);

	if (pool == NULL || !cu_handle_add(pool, CU_POOL)) {
		free(pool);
		return NULL;
	}
	pool->device = device;
	pool->is_default = is_default;
	for (size_t i = 0; i < HM_COUNT(pool->flags); i++)
		pool->flags[i] = 1;
	list_init(&pool->chunks);
	link_append(&pools, &pool->link);
	return pool;
}

CUmemoryPool cu_pool_import(unsigned device)
{
	CUmemoryPool pool = pool_new(device, false);

	if (pool != NULL)
		pool->imported = true;
	return pool;
}

CUmemoryPool cu_pool_default(unsigned device)
{
	struct cu_device *dev = &cu.devices[device];

	if (dev->default_pool == NULL) {
		dev->default_pool = pool_new(device, true);
		dev->current_pool = dev->default_pool;
	}
	return dev->default_pool;
}

CUmemoryPool cu_pool_of_host(void)
{
	static CUmemoryPool pool;

	if (pool == NULL) {
		pool = pool_new(0, true);
		if (pool != NULL)
			pool->on_host = true;
	}
	return pool;
}

bool cu_place_is_host(const CUmemLocation *where)
{
	return where->type >= CU_MEM_LOCATION_TYPE_HOST && where->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static void chunk_free(CUmemoryPool pool, struct cu_region *chunk)
{
	pool->reserved -= chunk->bytes;
	cu_region_free(chunk);
}

/* Gives empty chunks back until no more than `keep` is reserved. */
static void trim(CUmemoryPool pool, uint64_t keep)
{
	LIST_FOR_EACH (&pool->chunks, it) {
		struct cu_region *chunk = HM_CONTAINER(it, struct cu_region, room);

		if (pool->reserved > keep && chunk->granules.used == 0)
			chunk_free(pool, chunk);
	}
}

static void pool_free(CUmemoryPool pool)
{
	trim(pool, 0);
	link_remove(&pool->link);
	cu_handle_remove(pool);
	free(pool);
}

void cu_pools_release(unsigned device)
{
	LIST_FOR_EACH (&pools, it) {
		CUmemoryPool pool = HM_CONTAINER(it, struct CUmemPoolHandle_st, link);

		if (pool->device == device)
			trim(pool, pool->threshold);
	}
}

static void chunks_free(CUmemoryPool pool)
{
	LIST_FOR_EACH (&pool->chunks, it)
		chunk_free(pool, HM_CONTAINER(it, struct cu_region, room));
	pool->used = 0;
}

void cu_pools_empty(unsigned device)
{
	LIST_FOR_EACH (&pools, it) {
		CUmemoryPool pool = HM_CONTAINER(it, struct CUmemPoolHandle_st, link);

		if (pool->device != device || pool->on_host)
			continue;
		chunks_free(pool);
		if (pool->doomed)
			pool_free(pool);
	}
}

static CUresult chunk_new(CUmemoryPool pool, uint64_t bytes, struct cu_region **out)
{
	uint64_t granule = bytes > CHUNK_BYTES ? CU_PAGE_BYTES : CU_ALIGN_BYTES;
	uint64_t most = pool->max_bytes > 0 ? pool->max_bytes : UINT64_MAX;

	if (bytes > most || pool->reserved > most - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = cu_region_new(CU_REGION_POOL, pool->device, bytes, 0, 0);
	if (*out == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->pool = pool;
	(*out)->granule_bytes = granule;
	if (!granules_init(&(*out)->granules, bytes / granule)) {
		cu_region_free(*out);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUresult rc = pool->on_host ? CUDA_SUCCESS : cu_region_charge(out);

	if (rc != CUDA_SUCCESS)
		return rc;
	link_append(&pool->chunks, &(*out)->room);
	pool->reserved += bytes;
	pool->reserved_high = HM_MAX(pool->reserved_high, pool->reserved);
	return CUDA_SUCCESS;
}

/* A whole step, or where there is no room for one, just the pages needed; and again after what lies idle has gone. */
static CUresult grow(CUmemoryPool pool, uint64_t bytes, struct cu_region **out)
{
	uint64_t pages = cu_round(bytes, CU_PAGE_BYTES), step = HM_MAX(pages, CHUNK_BYTES);
	CUresult rc = chunk_new(pool, step, out);

	if (rc == CUDA_ERROR_OUT_OF_MEMORY && pages < step)
		rc = chunk_new(pool, pages, out);
	if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
		trim(pool, 0);
		rc = chunk_new(pool, pages, out);
	}
	return rc;
}

/* The granules of an allocation in a chunk; whole pages are kept for what needs them. */
static size_t take_from(struct cu_region *chunk, uint64_t bytes)
{
	if (chunk->granule_bytes == CU_PAGE_BYTES && bytes < CU_PAGE_BYTES)
		return SIZE_MAX;
	return granules_take(&chunk->granules, cu_round(bytes, chunk->granule_bytes) / chunk->granule_bytes);
}

static CUresult pool_alloc(CUmemoryPool pool, uint64_t bytes, CUdeviceptr *out)
{
	struct cu_region *chunk = NULL;
	size_t at = SIZE_MAX;

	if (bytes > cu_info(pool->device)->memory_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	LIST_FOR_EACH (&pool->chunks, it) {
		chunk = HM_CONTAINER(it, struct cu_region, room);
		at = take_from(chunk, bytes);
		if (at != SIZE_MAX)
			break;
	}
	if (at == SIZE_MAX) {
		CUresult rc = grow(pool, bytes, &chunk);

		if (rc != CUDA_SUCCESS)
			return rc;
		at = take_from(chunk, bytes);
		if (at == SIZE_MAX)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pool->used += cu_round(bytes, chunk->granule_bytes);
	pool->used_high = HM_MAX(pool->used_high, pool->used);
	*out = chunk->base + at * chunk->granule_bytes;
	return CUDA_SUCCESS;
}

void cu_pool_give(const struct cu_extent *x)
{
	CUmemoryPool pool = x->region->pool;

	granules_give(&x->region->granules, (x->base - x->region->base) / x->region->granule_bytes);
	pool->used -= x->size;
	if (pool->doomed && pool->used == 0)
		pool_free(pool);
}

CUresult cu_pool_alloc(struct CUctx_st *ctx, CUmemoryPool pool, size_t bytes, CUdeviceptr *out)
{
	if (out == NULL || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool == NULL) {
		if (cu_pool_default(ctx->device) == NULL)
			return CUDA_ERROR_OUT_OF_MEMORY;
		pool = cu.devices[ctx->device].current_pool;
	} else if (!cu_handle_is(pool, CU_POOL) || pool->doomed || pool->imported) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return pool_alloc(pool, bytes, out);
}

CU_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || props == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	bool on_host = cu_place_is_host(&props->location);

	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE && !on_host))
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED); /* pools of managed memory are not simulated */
	if (props->handleTypes != 0 && props->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED); /* no fabric */
	if (!on_host && (props->location.id < 0 || (unsigned)props->location.id >= cu.count))
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	CUmemoryPool pool = pool_new(on_host ? 0 : (unsigned)props->location.id, false);

	if (pool == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	pool->on_host = on_host;
	pool->handle_types = props->handleTypes;
	pool->max_bytes = cu_round(HM_MIN(props->maxSize, UINT64_MAX / 2), CU_PAGE_BYTES);
	*out = pool;
	return cu_leave(CUDA_SUCCESS);
}

/* Takes the lock and looks the pool up. */
static CUresult enter_pool(CUmemoryPool pool)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(pool, CU_POOL) && !pool->doomed ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

CU_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult rc = enter_pool(pool);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_device *dev = &cu.devices[pool->device];

	if (pool->is_default)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (dev->current_pool == pool)
		dev->current_pool = dev->default_pool;
	pool->doomed = true;
	if (pool->used == 0)
		pool_free(pool);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CUresult rc = enter_pool(pool);

	if (rc != CUDA_SUCCESS)
		return rc;
	trim(pool, keep);
	return cu_leave(CUDA_SUCCESS);
}

/* The 64-bit values of a pool, by attribute from RELEASE_THRESHOLD on. */
static uint64_t *value_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_high;
	default: return NULL;
	}
}

static bool is_flag(CUmemPool_attribute attribute)
{
	return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	       attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CU_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_pool(pool);

	if (rc != CUDA_SUCCESS)
		return rc;
	const uint64_t *value = value_of(pool, attribute);

	if (is_flag(attribute))
		*(int *)out = pool->flags[attribute - 1];
	else if (value != NULL)
		*(cuuint64_t *)out = *value;
	else
		rc = CUDA_ERROR_INVALID_VALUE;
	return cu_leave(rc);
}

CU_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_pool(pool);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (is_flag(attribute))
		pool->flags[attribute - 1] = *(const int *)value;
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(const cuuint64_t *)value;
	/* A high-water mark can only be reset: to 0, which means to the present value. */
	else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->reserved_high = pool->reserved;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->used_high = pool->used;
	else
		rc = CUDA_ERROR_INVALID_VALUE;
	return cu_leave(rc);
}

/* A pool's memory is for its own device: peer access is not simulated. */
CU_EXPORT CUresult cuMemPoolGetAccess(int *out, CUmemoryPool pool, CUmemLocation *where)
{
	if (out == NULL || where == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_pool(pool);

	if (rc != CUDA_SUCCESS)
		return rc;
	bool own = where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id == (int)pool->device;

	*out = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	if (map == NULL && count > 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_pool(pool);

	if (rc != CUDA_SUCCESS)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id != (int)pool->device)
			rc = CUDA_ERROR_INVALID_DEVICE;
	return cu_leave(rc);
}
