#include "sim/cuda/host_mem.h"
#include "sim/cuda/space.h"
#include "sim/cuda/vmm.h"

/* What is known of a pointer: an extent of device memory, or page-locked host memory. */
struct pointee {
	bool device;
	struct cu_extent extent;
	struct cu_host *host;
};

static bool look(CUdeviceptr ptr, struct pointee *out)
{
	*out = (struct pointee) { .device = false };
	out->device = cu_extent_at(ptr, &out->extent);
	if (!out->device)
		out->host = cu_host_at((uintptr_t)ptr);
	return out->device || out->host != NULL;
}

static unsigned device_of(const struct pointee *p)
{
	if (p->host != NULL)
		return p->host->ctx->device;
	if (p->extent.region->kind == CU_REGION_RESERVED)
		return cu_mapping_at(p->extent.region, p->extent.base)->physical->device;
	return p->extent.region->device;
}

static CUcontext context_of(const struct pointee *p)
{
	return p->host != NULL ? p->host->ctx : p->extent.region->ctx; /* none for pools and mapped memory */
}

/* Unique in the process: the region's number, and the place in it. */
static unsigned long long buffer_id(const struct pointee *p)
{
	if (p->host != NULL)
		return p->host->base;
	return p->extent.region->id << 24 | (p->extent.base - p->extent.region->base) / CU_ALIGN_BYTES;
}

static CUresult answer(const struct pointee *p, CUpointer_attribute attribute, CUdeviceptr ptr, void *out)
{
	bool managed = p->device && p->extent.region->kind == CU_REGION_MANAGED;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)out = context_of(p); return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)out = p->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = ptr; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (p->device && !managed)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)out = (void *)(uintptr_t)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(int *)out = 0; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)out = buffer_id(p); return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned char *)out = managed; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = (int)device_of(p); return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned char *)out = p->device && (p->extent.region->kind == CU_REGION_BLOCK ||
						      p->extent.region->kind == CU_REGION_LARGE);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)out = p->device ? p->extent.base : p->host->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)out = p->device ? p->extent.size : p->host->bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned char *)out = 1; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = p->device ? p->extent.region->pool : NULL;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CU_EXPORT CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct pointee p;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || !look(ptr, &p))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(answer(&p, attribute, ptr, out));
}

/* Bytes of an attribute's value, for the zero that stands for "unknown". */
static size_t value_bytes(CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED: return 1;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return 4;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return 8;
	default: return 0;
	}
}

/* Unlike the call for one attribute, this succeeds for any pointer: what does not apply is 0 (and the device -2). */
CU_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out, CUdeviceptr ptr)
{
	struct pointee p;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (count == 0 || attributes == NULL || out == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	bool known = look(ptr, &p);

	for (unsigned i = 0; i < count; i++) {
		size_t bytes = value_bytes(attributes[i]);

		if (bytes == 0)
			return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
		if (known && answer(&p, attributes[i], ptr, out[i]) == CUDA_SUCCESS)
			continue;
		for (size_t b = 0; b < bytes; b++)
			((unsigned char *)out[i])[b] = 0;
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)out[i] = -2; /* CU_DEVICE_INVALID */
	}
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct pointee p;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !look(ptr, &p) || !p.device)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(CUDA_SUCCESS); /* copies are synchronous already */
}
