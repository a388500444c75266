/* The pools of this process: what each holds is read from the driver, and charged. */
#include "vgpu/pool.h"

#include "vgpu/booking.h"
#include "vgpu/graph_memory.h"
#include "vgpu/hooks.h"
#include "vgpu/lock.h"
#include "vgpu/overhead.h"
#include "vgpu/throttle.h"

bool pool_attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *out)
{
	cuuint64_t value = 0;

	if (REAL(cuMemPoolGetAttribute)(pool, which, &value) != CUDA_SUCCESS)
		return false;
	*out = value;
	return true;
}

struct record *pool_find(struct vgpu *v, CUmemoryPool pool)
{
	struct record *r = track_hold(&v->track, TRACK_POOL, (uintptr_t)pool);

	if (r != NULL)
		track_release(&v->track, TRACK_POOL, (uintptr_t)pool);
	return r != NULL && !r->pooled ? r : NULL;
}

static void set_threshold(struct record *r, cuuint64_t bytes)
{
	r->mappings = (uint32_t)HM_MIN(bytes / VGPU_PAGE_BYTES, (cuuint64_t)UINT32_MAX);
}

struct record *pool_add(struct vgpu *v, CUmemoryPool pool, CUdevice device, bool on_host)
{
	struct vgpu_card *card = on_host ? NULL : vgpu_card_of(v, device);
	struct record *r = track_new(&v->track);
	cuuint64_t threshold = UINT64_MAX;

	if (r == NULL)
		return NULL;
	REAL(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	r->kind = TRACK_POOL;
	r->key = (uintptr_t)pool;
	r->card = (uint8_t)(card != NULL ? card - v->cards : 0);
	r->owner = (uint64_t)device;
	r->small = on_host;
	set_threshold(r, threshold);
	track_put(&v->track, r);
	return r;
}

uint64_t pool_take_growth(struct vgpu *v, struct record *pool, uint64_t reserved, uint64_t booked)
{
	uint64_t growth = reserved > pool->bytes ? reserved - pool->bytes : 0;
	uint64_t shrunk = pool->bytes > reserved ? pool->bytes - reserved : 0;

	pool->bytes = reserved;
	vgpu_uncharge(v, &v->cards[pool->card], shrunk + (booked > growth ? booked - growth : 0));
	return growth > booked ? growth - booked : 0;
}

/* A synchronisation may give back what is reserved above the threshold and not in use. */
static bool is_idle(const struct record *r, CUmemoryPool pool)
{
	uint64_t used;

	return r->bytes / VGPU_PAGE_BYTES > r->mappings &&
	       pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && used < r->bytes;
}

static void refresh(struct vgpu *v, struct record *r)
{
	CUmemoryPool pool = (CUmemoryPool)(uintptr_t)r->key; // NOLINT
	uint64_t reserved;

	if (r->small || r->pooled || !pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
		return;
	vgpu_charge_taken(v, &v->cards[r->card], pool_take_growth(v, r, reserved, 0));
	if (is_idle(r, pool))
		v->pools_idle = true;
}

static void refresh_one(struct vgpu *v, CUmemoryPool pool)
{
	struct record *r;

	lock_take(&v->pool_lock);
	r = pool_find(v, pool);
	if (r != NULL)
		refresh(v, r);
	lock_release(&v->pool_lock);
}

static void refresh_visited(const struct record *r, void *arg)
{
	if (r->kind == TRACK_POOL)
		refresh_one(arg, (CUmemoryPool)r->key); // NOLINT
}

void pools_refresh(struct vgpu *v)
{
	track_each(&v->track, refresh_visited, v);
	graph_memory_refresh_all(v);
}

/* True: it has ended. */
static bool bury_if_empty(struct vgpu *v, struct record *pool)
{
	if (!pool->pooled || pool->refs != 0)
		return false;
	vgpu_uncharge(v, &v->cards[pool->card], pool->bytes);
	track_remove(&v->track, pool);
	track_free(&v->track, pool);
	return true;
}

void pool_pointer_freed(struct vgpu *v, struct record *r)
{
	struct record *pool = (struct record *)(uintptr_t)r->owner; // NOLINT
	bool ended;

	vgpu_uncharge(v, &v->cards[r->card], r->bytes); /* 0 where the pool bears it */
	track_free(&v->track, r);
	if (pool == NULL)
		return;
	lock_take(&v->pool_lock);
	refresh(v, pool);
	ended = pool->refs > 0 && --pool->refs == 0 && bury_if_empty(v, pool);
	lock_release(&v->pool_lock);
	/* It may have held less than it was charged for since it was destroyed; that was taken for so much less code.
	 */
	if (ended)
		overhead_settle(v);
}

/* A pool that the driver named. Of managed memory: charged to the device that it is for. */
static void named(struct vgpu *v, CUmemoryPool pool, const CUmemLocation *where)
{
	lock_take(&v->pool_lock);
	if (pool_find(v, pool) == NULL)
		pool_add(v, pool, where->id, where->type != CU_MEM_LOCATION_TYPE_DEVICE);
	lock_release(&v->pool_lock);
}

VGPU_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	CUresult rc = REAL(cuMemPoolCreate)(out, props);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v == NULL)
		return rc;
	if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
		v->uses_managed = true;
	if (props->location.type != CU_MEM_LOCATION_TYPE_INVALID) /* managed memory, for the device that asks */
		named(v, *out, &props->location);
	return rc;
}

static CUresult handed_out(CUresult rc, CUmemoryPool *out, const CUmemLocation *where)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL)
		named(v, *out, where);
	return rc;
}

VGPU_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *where, int allocation_type)
{
	return handed_out(REAL(cuMemGetDefaultMemPool)(out, where, allocation_type), out, where);
}

VGPU_EXPORT CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *where, int allocation_type)
{
	return handed_out(REAL(cuMemGetMemPool)(out, where, allocation_type), out, where);
}

VGPU_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	CUresult rc = REAL(cuMemPoolSetAttribute)(pool, attribute, value);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct record *r;

	if (v == NULL || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		return rc;
	lock_take(&v->pool_lock);
	r = pool_find(v, pool);
	if (r != NULL) {
		set_threshold(r, *(const cuuint64_t *)value);
		refresh(v, r);
	}
	lock_release(&v->pool_lock);
	return rc;
}

VGPU_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CUresult rc = REAL(cuMemPoolTrimTo)(pool, keep);
	struct vgpu *v = vgpu_get();

	if (v != NULL)
		refresh_one(v, pool);
	return rc;
}

/* A destroyed pool lives on until its last allocation is freed; the driver tells nothing of it any more, so until then
 * it keeps its charge. Under the lock: its address may be another pool's the next moment. */
VGPU_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct vgpu *v = vgpu_get();
	struct record *r;
	CUresult rc;

	if (v == NULL)
		return REAL(cuMemPoolDestroy)(pool);
	lock_take(&v->pool_lock);
	r = pool_find(v, pool);
	if (r != NULL)
		refresh(v, r);
	rc = REAL(cuMemPoolDestroy)(pool);
	if (r != NULL && rc == CUDA_SUCCESS) {
		r->pooled = 1;
		bury_if_empty(v, r);
	}
	lock_release(&v->pool_lock);
	return rc;
}

/* What a synchronisation gives back, other processes of the container can have at once. It may be the program's last
 * call but exit: what has finished is charged. */
static CUresult synchronised(CUresult rc)
{
	struct vgpu *v = vgpu_get();

	throttle_settle();
	if (HM_UNLIKELY(v != NULL && v->pools_idle)) {
		v->pools_idle = false;
		pools_refresh(v);
	}
	return rc;
}

VGPU_EXPORT CUresult cuCtxSynchronize(void)
{
	return synchronised(REAL(cuCtxSynchronize)());
}

VGPU_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	return synchronised(REAL(cuCtxSynchronize_v2)(ctx));
}

VGPU_EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	return synchronised(REAL(cuStreamSynchronize)(stream));
}

VGPU_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	return synchronised(REAL(cuStreamSynchronize_ptsz)(stream));
}

VGPU_EXPORT CUresult cuEventSynchronize(CUevent event)
{
	return synchronised(REAL(cuEventSynchronize)(event));
}
