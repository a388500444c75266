/* Allocating from a pool:
 *  1. Charge the request's pages. Refused, but the pool has that much unused: go on without a charge.
 *  2. Call the driver.
 *  3. Under the pools' lock read what the pool holds now (RESERVED_MEM_CURRENT); charge the growth since it was last
 *     read, less the charge of 1. Growth that was another thread's has two charges until that thread gets here: never
 *     too few.
 *  4. Over the limit (the pool grew by more than was asked): charge it all the same, free the allocation, refuse.
 * A pool whose attribute the driver does not tell is charged by allocation. */
#include "vgpu/pool.h"

#include <sched.h>

#include "vgpu/booking.h"
#include "vgpu/hooks.h"

enum { POOL_DOOMED = 1 }; /* in a pool's `mappings`: destroyed */

static void lock_pools(struct vgpu *v)
{
	while (atomic_exchange(&v->pool_lock, 1) != 0)
		sched_yield();
}

static void unlock_pools(struct vgpu *v)
{
	atomic_store(&v->pool_lock, 0);
}

/* Stands for the graphs of a device; no pool has an address so low. */
static CUmemoryPool pool_of_graphs(CUdevice device)
{
	return (CUmemoryPool)((uintptr_t)device + 1); // NOLINT
}

static CUresult graph_attribute(CUmemoryPool pool, CUmemPool_attribute which, cuuint64_t *out)
{
	CUgraphMem_attribute its = which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
					   ? CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
					   : CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;

	return REAL(cuDeviceGetGraphMemAttribute)((CUdevice)((uintptr_t)pool - 1), its, out);
}

static bool pool_attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *out)
{
	bool is_graphs = (uintptr_t)pool - 1 < VGPU_DEVICES;
	cuuint64_t value = 0;

	if ((is_graphs ? graph_attribute(pool, which, &value) : REAL(cuMemPoolGetAttribute)(pool, which, &value)) !=
	    CUDA_SUCCESS)
		return false;
	*out = value;
	return true;
}

/* Records of pools change only under the pools' lock. Their `bytes` are what the pool is charged for, `refs` its live
 * allocations, `owner` its device; `small` marks one whose memory is the host's. */
static struct record *find_pool(struct vgpu *v, CUmemoryPool pool)
{
	struct record *r = track_hold(&v->track, TRACK_POOL, (uintptr_t)pool);

	if (r != NULL)
		track_release(&v->track, TRACK_POOL, (uintptr_t)pool);
	return r;
}

static struct record *add_pool(struct vgpu *v, CUmemoryPool pool, const struct vgpu_card *card)
{
	struct record *r = track_new(&v->track);

	if (r == NULL)
		return NULL;
	r->kind = TRACK_POOL;
	r->key = (uintptr_t)pool;
	r->card = (uint8_t)(card != NULL ? card - v->cards : 0);
	r->small = card == NULL;
	track_put(&v->track, r);
	return r;
}

/* Step 3 for `booked` bytes that are charged already. False: over the limit; what the pool holds is charged. */
static bool charge_growth(struct vgpu *v, struct record *pool, uint64_t reserved, uint64_t booked)
{
	struct vgpu_card *card = &v->cards[pool->card];
	uint64_t growth = reserved > pool->bytes ? reserved - pool->bytes : 0;
	uint64_t shrunk = pool->bytes > reserved ? pool->bytes - reserved : 0;
	bool fits = true;

	pool->bytes = reserved;
	if (growth > booked) {
		fits = vgpu_try_charge(v, card, growth - booked);
		if (!fits)
			vgpu_charge_taken(v, card, growth - booked);
	} else {
		vgpu_uncharge(v, card, booked - growth);
	}
	vgpu_uncharge(v, card, shrunk);
	return fits;
}

bool pool_graph_memory(CUdevice device, uint64_t *reserved, uint64_t *used)
{
	CUmemoryPool pool = pool_of_graphs(device);

	return pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved) &&
	       pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used);
}

bool pool_settle_graphs(struct vgpu *v, CUdevice device, uint64_t booked)
{
	CUmemoryPool pool = pool_of_graphs(device);
	struct vgpu_card *card = vgpu_card_of(v, device);
	struct record *r;
	uint64_t reserved;
	bool fits = true;

	if (card == NULL)
		return false;
	lock_pools(v);
	r = find_pool(v, pool);
	if (r == NULL)
		r = add_pool(v, pool, card);
	if (r != NULL && pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
		fits = charge_growth(v, r, reserved, booked);
	unlock_pools(v);
	return fits;
}

static void refresh_one(struct vgpu *v, CUmemoryPool pool)
{
	struct record *r;
	uint64_t reserved;

	lock_pools(v);
	r = find_pool(v, pool);
	if (r != NULL && !r->small && pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
		charge_growth(v, r, reserved, 0);
	unlock_pools(v);
}

static void refresh_visited(const struct record *r, void *arg)
{
	if (r->kind == TRACK_POOL)
		refresh_one(arg, (CUmemoryPool)r->key); // NOLINT
}

void pools_refresh(struct vgpu *v)
{
	track_each(&v->track, refresh_visited, v);
}

struct pool_request {
	CUmemoryPool pool; /* NULL: the current one of the stream's device */
	CUstream stream;
	bool per_thread, by_attribute;
	CUdevice device;
	struct booking b;
};

static bool has_unused(CUmemoryPool pool, uint64_t bytes)
{
	uint64_t reserved, used;

	return pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
	       pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && reserved >= used &&
	       reserved - used >= bytes;
}

static CUresult open_request(struct pool_request *q, uint64_t bytes)
{
	uint64_t pages = (bytes + VGPU_PAGE_BYTES - 1) / VGPU_PAGE_BYTES * VGPU_PAGE_BYTES, reserved;
	CUresult rc;

	q->by_attribute = pool_attribute(q->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
	rc = booking_open_on(&q->b, q->device, pages);
	if (rc != CUDA_ERROR_OUT_OF_MEMORY || q->b.card == NULL)
		return rc;
	if (q->b.v->mode == VGPU_ON && q->by_attribute && has_unused(q->pool, bytes))
		rc = booking_open_on(&q->b, q->device, 0);
	return rc;
}

static CUresult device_of_stream(CUstream stream, CUdevice *out)
{
	bool is_handle = stream != NULL && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;

	if (is_handle && REAL(cuStreamGetDevice)(stream, out) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return REAL(cuCtxGetDevice)(out);
}

/* An explicit pool is known from its creation, or it is some device's default pool. */
static bool device_of_pool(const struct pool_request *q, CUdevice *out)
{
	int devices = 0;

	if (REAL(cuDeviceGetCount)(&devices) != CUDA_SUCCESS)
		return false;
	for (CUdevice i = 0; i < devices; i++) {
		CUmemoryPool its;

		if (REAL(cuDeviceGetDefaultMemPool)(&its, i) == CUDA_SUCCESS && its == q->pool) {
			*out = i;
			return true;
		}
	}
	return false;
}

static CUresult find_device(struct pool_request *q, bool *on_host)
{
	struct record *known = q->pool != NULL ? find_pool(q->b.v, q->pool) : NULL;
	CUresult rc = device_of_stream(q->stream, &q->device);

	*on_host = false;
	if (rc != CUDA_SUCCESS)
		return rc;
	if (q->pool == NULL)
		return REAL(cuDeviceGetMemPool)(&q->pool, q->device);
	if (known != NULL) {
		*on_host = known->small;
		q->device = (CUdevice)known->owner;
	} else {
		device_of_pool(q, &q->device);
	}
	return CUDA_SUCCESS;
}

/* False: nothing is to be charged, the driver's answer stands. */
static bool begin(struct pool_request *q, uint64_t bytes, CUresult *rc)
{
	bool on_host = false;

	q->b.v = bytes != 0 && bytes <= REGION_MAX_BYTES ? vgpu_get() : NULL;
	*rc = CUDA_SUCCESS;
	if (q->b.v == NULL || stream_is_capturing(q->stream, q->per_thread))
		return false;
	*rc = find_device(q, &on_host);
	if (on_host)
		return false;
	if (*rc == CUDA_SUCCESS)
		*rc = open_request(q, bytes);
	return true;
}

/* Step 3. */
static bool settle(struct pool_request *q)
{
	struct vgpu *v = q->b.v;
	struct record *pool = NULL;
	uint64_t reserved;
	bool fits = true;

	lock_pools(v);
	if (q->by_attribute) {
		pool = find_pool(v, q->pool);
		if (pool == NULL)
			pool = add_pool(v, q->pool, q->b.card);
	}
	if (pool != NULL && pool_attribute(q->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)) {
		pool->owner = (uint64_t)q->device;
		pool->refs++;
		q->b.record->owner = (uintptr_t)q->pool;
		fits = charge_growth(v, pool, reserved, q->b.charged);
	} else {
		q->b.record->bytes = q->b.charged;
	}
	unlock_pools(v);
	return fits;
}

static CUresult finish(struct pool_request *q, CUresult rc, CUdeviceptr *out)
{
	bool fits;

	if (rc != CUDA_SUCCESS) {
		booking_cancel(&q->b);
		return rc;
	}
	q->b.record->kind = TRACK_POINTER;
	q->b.record->key = *out;
	q->b.record->pooled = 1;
	fits = settle(q);
	track_put(&q->b.v->track, q->b.record);
	if (fits)
		return CUDA_SUCCESS;
	if (q->per_thread)
		cuMemFreeAsync_ptsz(*out, q->stream);
	else
		cuMemFreeAsync(*out, q->stream);
	*out = 0;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	struct pool_request q = { .stream = stream };
	CUresult rc;

	if (!begin(&q, bytes, &rc))
		return REAL(cuMemAllocAsync)(out, bytes, stream);
	return rc != CUDA_SUCCESS ? rc : finish(&q, REAL(cuMemAllocAsync)(out, bytes, stream), out);
}

VGPU_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	struct pool_request q = { .stream = stream, .per_thread = true };
	CUresult rc;

	if (!begin(&q, bytes, &rc))
		return REAL(cuMemAllocAsync_ptsz)(out, bytes, stream);
	return rc != CUDA_SUCCESS ? rc : finish(&q, REAL(cuMemAllocAsync_ptsz)(out, bytes, stream), out);
}

VGPU_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	struct pool_request q = { .pool = pool, .stream = stream };
	CUresult rc;

	if (pool == NULL || !begin(&q, bytes, &rc))
		return REAL(cuMemAllocFromPoolAsync)(out, bytes, pool, stream);
	return rc != CUDA_SUCCESS ? rc : finish(&q, REAL(cuMemAllocFromPoolAsync)(out, bytes, pool, stream), out);
}

VGPU_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	struct pool_request q = { .pool = pool, .stream = stream, .per_thread = true };
	CUresult rc;

	if (pool == NULL || !begin(&q, bytes, &rc))
		return REAL(cuMemAllocFromPoolAsync_ptsz)(out, bytes, pool, stream);
	return rc != CUDA_SUCCESS ? rc : finish(&q, REAL(cuMemAllocFromPoolAsync_ptsz)(out, bytes, pool, stream), out);
}

static void bury_if_empty(struct vgpu *v, struct record *pool)
{
	if (pool->mappings != POOL_DOOMED || pool->refs != 0)
		return;
	vgpu_uncharge(v, &v->cards[pool->card], pool->bytes);
	track_free(&v->track, track_take(&v->track, TRACK_POOL, pool->key));
}

void pool_pointer_freed(struct vgpu *v, struct record *r)
{
	CUmemoryPool pool = (CUmemoryPool)(uintptr_t)r->owner; // NOLINT
	struct record *its;

	vgpu_uncharge(v, &v->cards[r->card], r->bytes); /* 0 where the pool bears it */
	track_free(&v->track, r);
	if (pool == NULL)
		return;
	refresh_one(v, pool);
	lock_pools(v);
	its = find_pool(v, pool);
	if (its != NULL && its->refs > 0 && --its->refs == 0)
		bury_if_empty(v, its);
	unlock_pools(v);
}

VGPU_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	CUresult rc = REAL(cuMemPoolCreate)(out, props);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct vgpu_card *card = NULL;
	struct record *r;

	if (v == NULL)
		return rc;
	if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		card = vgpu_card_of(v, props->location.id);
		if (card == NULL)
			return rc; /* allocating from it will be refused */
	} else if (props->location.type == CU_MEM_LOCATION_TYPE_INVALID) {
		return rc; /* managed memory: goes to the device that asks */
	}
	lock_pools(v);
	r = add_pool(v, *out, card);
	if (r != NULL)
		r->owner = (uint64_t)props->location.id;
	unlock_pools(v);
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

/* A destroyed pool lives on until its last allocation is freed; until then it keeps its charge. */
VGPU_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult rc = REAL(cuMemPoolDestroy)(pool);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct record *r;

	if (v == NULL)
		return rc;
	lock_pools(v);
	r = find_pool(v, pool);
	if (r != NULL) {
		r->mappings = POOL_DOOMED;
		bury_if_empty(v, r);
	}
	unlock_pools(v);
	return rc;
}
