/* Allocating from a pool:
 *  1. Charge the request's pages; where the pool has not that much unused, the steps that it will grow by. Refused, but
 *     the pool has that much unused by now: go on without a charge.
 *  2. Call the driver. Where the program names no pool, the one that is current now is named to the driver, so that
 *     another thread's cuDeviceSetMemPool cannot come in between.
 *  3. Under the pools' lock read what the pool holds now (RESERVED_MEM_CURRENT); then charge the growth since it was
 *     last read, less the charge of 1. Growth that was another thread's is charged twice until that thread is here.
 *  4. Over the limit (the pool grew by more than was asked): charge it all the same, free the allocation, have the pool
 *     give back what it grew by, refuse.
 * A pool whose attribute the driver does not tell is charged by allocation. */
#include "vgpu/booking.h"
#include "vgpu/hooks.h"
#include "vgpu/lock.h"
#include "vgpu/pool.h"

#define MAX_STEP (UINT64_C(32) << 20)

struct pool_request {
	CUmemoryPool pool; /* NULL: the current one of the stream's device */
	CUstream stream;
	bool per_thread, by_attribute;
	CUdevice device;
	uint64_t held; /* by the pool, before */
	struct booking b;
};

static bool has_unused(CUmemoryPool pool, uint64_t bytes)
{
	uint64_t reserved, used;

	return pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
	       pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && reserved >= used &&
	       reserved - used >= bytes;
}

/* The largest step that real drivers take, until a smaller one was seen. */
static uint64_t step_of(const struct vgpu *v)
{
	return v->pool_step != 0 ? v->pool_step : MAX_STEP;
}

static void learn_step(struct vgpu *v, uint64_t growth)
{
	uint64_t step = growth & (0 - growth);

	if (growth != 0 && step < step_of(v))
		v->pool_step = HM_MAX(step, VGPU_PAGE_BYTES);
}

static CUresult open_request(struct pool_request *q, uint64_t bytes)
{
	uint64_t unit = VGPU_PAGE_BYTES, reserved;
	CUresult rc;

	q->by_attribute = q->by_attribute || pool_attribute(q->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
	if (q->by_attribute && !has_unused(q->pool, bytes))
		unit = step_of(q->b.v);
	rc = booking_open_on(&q->b, q->device, (bytes + unit - 1) / unit * unit);
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
	struct record *known = q->pool != NULL ? pool_find(q->b.v, q->pool) : NULL;
	CUresult rc = known == NULL ? device_of_stream(q->stream, &q->device) : CUDA_SUCCESS;

	*on_host = false;
	if (rc != CUDA_SUCCESS)
		return rc;
	if (q->pool == NULL) {
		rc = REAL(cuDeviceGetMemPool)(&q->pool, q->device);
		known = rc == CUDA_SUCCESS ? pool_find(q->b.v, q->pool) : NULL;
	} else if (known != NULL) {
		*on_host = known->small;
		q->device = (CUdevice)known->owner;
	} else {
		device_of_pool(q, &q->device);
	}
	q->by_attribute = known != NULL; /* or it is to be seen */
	return rc;
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

/* False: over the limit; it is charged all the same. */
static bool charge_owed(struct vgpu *v, struct vgpu_card *card, uint64_t owed)
{
	if (owed == 0 || booking_charge(v, card, owed))
		return true;
	vgpu_charge_taken(v, card, owed);
	return false;
}

/* Step 3. */
static bool settle(struct pool_request *q)
{
	struct vgpu *v = q->b.v;
	struct record *pool = NULL;
	uint64_t reserved, owed = 0;

	lock_take(&v->pool_lock);
	if (q->by_attribute) {
		pool = pool_find(v, q->pool);
		if (pool == NULL)
			pool = pool_add(v, q->pool, q->device, false);
	}
	if (pool != NULL && pool_attribute(q->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)) {
		pool->card = (uint8_t)(q->b.card - v->cards);
		pool->refs++;
		q->b.record->owner = (uintptr_t)pool;
		q->held = pool->bytes;
		if (reserved > q->held)
			learn_step(v, reserved - q->held);
		owed = pool_take_growth(v, pool, reserved, q->b.charged);
	} else {
		q->b.record->bytes = q->b.charged;
	}
	lock_release(&v->pool_lock);
	return charge_owed(v, q->b.card, owed);
}

/* Step 4. Where the stream has not come to the free yet, the pool keeps it until the next synchronisation. Other
 * threads may be capturing. */
static void undo(const struct pool_request *q, CUdeviceptr ptr)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (q->per_thread)
		cuMemFreeAsync_ptsz(ptr, q->stream);
	else
		cuMemFreeAsync(ptr, q->stream);
	if (REAL(cuThreadExchangeStreamCaptureMode)(&mode) != CUDA_SUCCESS)
		return;
	cuMemPoolTrimTo(q->pool, q->held);
	REAL(cuThreadExchangeStreamCaptureMode)(&mode);
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
	undo(q, *out);
	*out = 0;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	struct pool_request q = { .stream = stream };
	CUresult rc;

	if (!begin(&q, bytes, &rc))
		return REAL(cuMemAllocAsync)(out, bytes, stream);
	return rc != CUDA_SUCCESS ? rc : finish(&q, REAL(cuMemAllocFromPoolAsync)(out, bytes, q.pool, stream), out);
}

VGPU_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	struct pool_request q = { .stream = stream, .per_thread = true };
	CUresult rc;

	if (!begin(&q, bytes, &rc))
		return REAL(cuMemAllocAsync_ptsz)(out, bytes, stream);
	return rc != CUDA_SUCCESS ? rc
				  : finish(&q, REAL(cuMemAllocFromPoolAsync_ptsz)(out, bytes, q.pool, stream), out);
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
