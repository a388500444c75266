#include "sim/cuda/graph_memory.h"

#include <stdlib.h>

#include "sim/cuda/space.h"

CUresult cu_graph_alloc_new(const CUDA_MEM_ALLOC_NODE_PARAMS *params, const void *owner, struct cu_graph_alloc **out)
{
	unsigned device = (unsigned)params->poolProps.location.id;
	struct cu_graph_alloc *a = calloc(1, sizeof *a);
	struct cu_region *r = a != NULL ? cu_region_new(CU_REGION_GRAPH, device, params->bytesize, 0, 0) : NULL;

	if (r == NULL) {
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r->size = params->bytesize;
	r->graph_alloc = a;
	*a = (struct cu_graph_alloc) { .region = r, .refs = 1, .owner = owner, .params = *params };
	a->params.dptr = r->base;
	a->params.accessDescs = NULL; /* the caller's to keep, not ours */
	a->params.accessDescCount = 0;
	*out = a;
	return CUDA_SUCCESS;
}

struct cu_graph_alloc *cu_graph_alloc_ref(struct cu_graph_alloc *a)
{
	a->refs++;
	return a;
}

void cu_graph_alloc_unref(struct cu_graph_alloc *a)
{
	if (--a->refs > 0)
		return;
	cu_region_free(a->region);
	free(a);
}

struct cu_graph_alloc *cu_graph_alloc_at(CUdeviceptr ptr)
{
	const struct cu_region *r = cu_region_at(ptr);

	return r != NULL && r->kind == CU_REGION_GRAPH && r->base == ptr ? r->graph_alloc : NULL;
}

CUresult cu_graph_reserve(unsigned device, uint64_t bytes)
{
	struct cu_graph_memory *g = &cu.devices[device].graph_memory;

	if (g->used + bytes <= g->reserved)
		return CUDA_SUCCESS;
	uint64_t more = g->used + bytes - g->reserved;
	CUresult rc = cu_charge(device, SIM_MEM_DATA, more);

	if (rc != CUDA_SUCCESS)
		return rc;
	g->reserved += more;
	g->reserved_high = HM_MAX(g->reserved_high, g->reserved);
	return CUDA_SUCCESS;
}

void cu_graph_take(struct cu_graph_alloc *a)
{
	struct cu_graph_memory *g = &cu.devices[a->region->device].graph_memory;

	a->live = true;
	a->refs++;
	g->used += a->region->bytes;
	g->used_high = HM_MAX(g->used_high, g->used);
}

void cu_graph_give(struct cu_graph_alloc *a)
{
	cu.devices[a->region->device].graph_memory.used -= a->region->bytes;
	a->live = false;
	cu_graph_alloc_unref(a);
}

CUresult cu_graph_free_outside(struct cu_graph_alloc *a)
{
	if (!a->live || a->owner_frees)
		return CUDA_ERROR_INVALID_VALUE;
	cu_graph_give(a);
	return CUDA_SUCCESS;
}

static void trim(unsigned device)
{
	struct cu_graph_memory *g = &cu.devices[device].graph_memory;

	cu_discharge(device, SIM_MEM_DATA, g->reserved - g->used);
	g->reserved = g->used;
}

void cu_graph_memory_empty(unsigned device)
{
	LIST_FOR_EACH (&cu_regions, it) {
		const struct cu_region *r = HM_CONTAINER(it, struct cu_region, link);

		if (r->kind == CU_REGION_GRAPH && r->device == device && r->graph_alloc->live)
			cu_graph_give(r->graph_alloc);
	}
	trim(device);
}

CU_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	struct cu_device *device;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	trim((unsigned)dev);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *out)
{
	struct cu_device *device;

	if (out == NULL || attribute < 0 || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	const struct cu_graph_memory *g = &device->graph_memory;
	const uint64_t values[] = { g->used, g->used_high, g->reserved, g->reserved_high };

	*(cuuint64_t *)out = values[attribute];
	return cu_leave(CUDA_SUCCESS);
}

/* A high-water mark can only be reset: to 0, which means to the present value. */
CU_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	struct cu_device *device;

	if (value == NULL || *(const cuuint64_t *)value != 0 ||
	    (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_graph_memory *g = &device->graph_memory;

	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		g->used_high = g->used;
	else
		g->reserved_high = g->reserved;
	return cu_leave(CUDA_SUCCESS);
}
