/* Managed memory: where it is, and what the program has advised. It is as a whole on one card or with the host: there
 * are no single pages. */
#include "sim/cuda/capture.h"
#include "sim/cuda/mem.h"
#include "sim/cuda/space.h"
#include "sim/cuda/stream.h"

CU_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (bytes > UINT64_MAX / 2)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	struct cu_region *r = cu_region_new(CU_REGION_MANAGED, ctx->device, bytes, 0, 0);

	if (r == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r->ctx = ctx;
	r->size = bytes;
	r->advice = (struct cu_advice) { .preferred = -2, .prefetched = -2 };
	*out = r->base;
	return cu_leave(CUDA_SUCCESS);
}

/* Off the card it is on. */
static void evict(struct cu_region *r)
{
	cu_discharge(r->device, SIM_MEM_DATA, r->charged);
	r->charged = 0;
}

/* Onto a card, if it fits there: leaves the one where it was. */
static void settle(struct cu_region *r, unsigned device)
{
	if (r->charged > 0 && r->device == device)
		return;
	if (cu_charge(device, SIM_MEM_DATA, r->bytes) != CUDA_SUCCESS)
		return;
	evict(r);
	r->device = device;
	r->charged = r->bytes;
}

void cu_managed_touch(struct cu_region *r)
{
	if (r->kind == CU_REGION_MANAGED && r->charged == 0 && r->advice.preferred != CU_DEVICE_CPU)
		settle(r, r->device);
}

/* A device, or the host by its number -1; -2 for what is neither. */
static int place_of(CUmemLocation where)
{
	switch (where.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: return where.id >= 0 && (unsigned)where.id < cu.count ? where.id : -2;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CU_DEVICE_CPU;
	default: return -2;
	}
}

/* The old forms name a device or CU_DEVICE_CPU. */
static int place_of_device(CUdevice dev)
{
	return dev >= CU_DEVICE_CPU && (dev < 0 || (unsigned)dev < cu.count) ? dev : -2;
}

/* The managed region that holds all of [ptr, ptr + bytes); NULL where none does. */
static struct cu_region *managed_at(CUdeviceptr ptr, size_t bytes)
{
	struct cu_region *r = cu_region_at(ptr);

	return r != NULL && r->kind == CU_REGION_MANAGED && bytes > 0 && cu_window_covers(ptr, bytes, true) ? r : NULL;
}

/* place: as place_of; ignored by the advice that needs none. Kept for the whole allocation. */
static CUresult advise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, int place)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = managed_at(ptr, bytes);
	bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
		      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;

	if (r == NULL || advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (placed && place == -2)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	uint32_t bit = placed ? 1U << (place + 1) : 0;

	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY: r->advice.read_mostly = true; break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY: r->advice.read_mostly = false; break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: r->advice.preferred = place; break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: r->advice.preferred = -2; break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY: r->advice.accessed_by |= bit; break;
	default: r->advice.accessed_by &= ~bit; break;
	}
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemAdvise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev)
{
	return advise(ptr, bytes, advice, place_of_device(dev));
}

CU_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
	return advise(ptr, bytes, advice, place_of(where));
}

static CUresult prefetch(CUdeviceptr ptr, size_t bytes, int place, CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_stream_get(ctx, stream, per_thread, &s);
	if (rc == CUDA_SUCCESS)
		rc = cu_capture_refuses(&s);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	struct cu_region *r = managed_at(ptr, bytes);

	if (r == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (place == -2)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	r->advice.prefetched = place;
	if (place == CU_DEVICE_CPU)
		evict(r);
	else
		settle(r, (unsigned)place);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream)
{
	return prefetch(ptr, bytes, place_of_device(dev), stream, false);
}

CU_EXPORT CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream)
{
	return prefetch(ptr, bytes, place_of_device(dev), stream, true);
}

CU_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned flags,
					 CUstream stream)
{
	return flags != 0 ? CUDA_ERROR_INVALID_VALUE : prefetch(ptr, bytes, place_of(where), stream, false);
}

CU_EXPORT CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned flags,
					      CUstream stream)
{
	return flags != 0 ? CUDA_ERROR_INVALID_VALUE : prefetch(ptr, bytes, place_of(where), stream, true);
}

CU_EXPORT CUresult cuMemRangeGetAttribute(void *out, size_t out_bytes, int attribute, CUdeviceptr ptr, size_t bytes)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	const struct cu_region *r = managed_at(ptr, bytes);

	if (out == NULL || r == NULL || out_bytes < sizeof(int) || out_bytes % sizeof(int) != 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	int *value = out;

	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *value = r->advice.read_mostly; break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *value = r->advice.preferred; break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *value = r->advice.prefetched; break;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: /* as many as there is room for, then "none" */
		for (int place = CU_DEVICE_CPU; place < SIM_MAX_CARDS; place++)
			if ((r->advice.accessed_by >> (place + 1) & 1) != 0 &&
			    value < (int *)out + out_bytes / sizeof(int))
				*value++ = place;
		while (value < (int *)out + out_bytes / sizeof(int))
			*value++ = -2;
		break;
	default: rc = CUDA_ERROR_NOT_SUPPORTED; break;
	}
	return cu_leave(rc);
}
