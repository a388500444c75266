#include "sim/cuda/vmm.h"

#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/handles.h"
#include "sim/cuda/multicast.h"
#include "sim/cuda/share.h"
#include "sim/cuda/space.h"

struct cu_mapping *cu_mapping_at(const struct cu_region *r, CUdeviceptr ptr)
{
	return r->mappings[(ptr - r->base) / CU_PAGE_BYTES];
}

char *cu_mapping_memory(const struct cu_mapping *m, CUdeviceptr ptr, bool writes)
{
	int needed = writes ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;

	if ((m->access & needed) != needed)
		return NULL;
	return m->physical->backing + m->offset + (ptr - m->base);
}

void cu_physical_put(struct cu_physical *p)
{
	if (p->refs > 0 || p->mapped > 0)
		return;
	cu_handle_remove(p);
	if (!p->free_of_charge)
		cu_discharge(p->device, SIM_MEM_DATA, p->bytes);
	if (p->multicast != NULL)
		cu_multicast_free(p->multicast);
	if (p->fd >= 0)
		close(p->fd);
	cu_backing_free(p->backing, p->bytes);
	free(p);
}

struct cu_physical *cu_physical_of(CUmemGenericAllocationHandle handle)
{
	struct cu_physical *p = (struct cu_physical *)(uintptr_t)handle;

	/* Without a reference only its mappings keep it, and the handle is no longer the program's to use. */
	return cu_handle_is(p, CU_PHYSICAL) && p->refs > 0 ? p : NULL;
}

static bool whole_pages(uint64_t bytes)
{
	return bytes > 0 && bytes % CU_PAGE_BYTES == 0;
}

CU_EXPORT CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
						 CUmemAllocationGranularity_flags option)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || prop == NULL || option < 0 || option > 1)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = CU_PAGE_BYTES;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr hint,
				       unsigned long long flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || !whole_pages(bytes) || (alignment & (alignment - 1)) != 0 || flags != 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct cu_region *r = cu_region_new(CU_REGION_RESERVED, 0, bytes, alignment, hint);

	if (r == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r->mappings = calloc(bytes / CU_PAGE_BYTES, sizeof(struct cu_mapping *));
	if (r->mappings == NULL) {
		cu_region_free(r);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*out = r->base;
	return cu_leave(CUDA_SUCCESS);
}

/* Whole reservations only, with nothing mapped in them. */
CU_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = cu_region_at(ptr);

	if (r == NULL || r->kind != CU_REGION_RESERVED || r->base != ptr || r->bytes != bytes)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	for (uint64_t i = 0; i < bytes / CU_PAGE_BYTES; i++)
		if (r->mappings[i] != NULL)
			return cu_leave(CUDA_ERROR_INVALID_VALUE);
	cu_region_free(r);
	return cu_leave(CUDA_SUCCESS);
}

/* With the memory of a file where there is one; takes p, and the file with it. */
static CUresult add(struct cu_physical *take_p, CUmemGenericAllocationHandle *out)
{
	struct cu_physical *p = take_p;

	p->backing = p->fd >= 0 ? cu_share_map(p->fd, 0, p->bytes) : cu_backing_new(p->bytes);
	if (p->backing == NULL || !cu_handle_add(p, CU_PHYSICAL)) {
		p->refs = 0;
		cu_physical_put(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = (uintptr_t)p;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop)
{
	static uint64_t last_id;
	unsigned device = (unsigned)prop->location.id;
	struct cu_physical *p = calloc(1, sizeof *p);

	if (p == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (struct cu_physical) { .device = device, .bytes = bytes, .prop = *prop, .refs = 1, .fd = -1 };
	CUresult rc = cu_charge(device, SIM_MEM_DATA, bytes);

	if (rc != CUDA_SUCCESS) {
		free(p);
		return rc;
	}
	if (prop->requestedHandleTypes != 0) {
		struct cu_note note = { .kind = CU_SHARE_PHYSICAL,
					.card = cu.devices[device].card,
					.handle_types = (uint32_t)prop->requestedHandleTypes,
					.id = ++last_id,
					.bytes = bytes };

		p->fd = cu_share_file(&note);
		if (p->fd < 0) {
			p->refs = 0;
			cu_physical_put(p);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	return add(p, out);
}

CUresult cu_physical_import(CUmemGenericAllocationHandle *out, int take_fd, uint64_t bytes,
			    const CUmemAllocationProp *prop)
{
	struct cu_physical *p = calloc(1, sizeof *p);

	if (p == NULL) {
		close(take_fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = (struct cu_physical) { .device = (unsigned)prop->location.id,
				    .bytes = bytes,
				    .prop = *prop,
				    .refs = 1,
				    .free_of_charge = true,
				    .fd = take_fd };
	return add(p, out);
}

CUresult cu_physical_multicast(CUmemGenericAllocationHandle *out, uint64_t bytes, struct cu_multicast *take_m,
			       int take_fd)
{
	struct cu_physical *p = calloc(1, sizeof *p);

	if (p == NULL) {
		if (take_fd >= 0)
			close(take_fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = (struct cu_physical) { .bytes = bytes, .refs = 1, .free_of_charge = true, .fd = take_fd };
	CUresult rc = add(p, out);

	if (rc == CUDA_SUCCESS)
		p->multicast = take_m;
	return rc;
}

CU_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
			       unsigned long long flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || prop == NULL || !whole_pages(bytes) || flags != 0 ||
	    prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED); /* host memory behind device addresses is not simulated */
	if (prop->requestedHandleTypes != 0 && prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED); /* no fabric */
	if (prop->location.id < 0 || (unsigned)prop->location.id >= cu.count)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	if (bytes > cu_info((unsigned)prop->location.id)->memory_bytes)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	return cu_leave(create(out, bytes, prop));
}

CU_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_physical *p = cu_physical_of(handle);

	if (p == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	p->refs--;
	cu_physical_put(p);
	return cu_leave(CUDA_SUCCESS);
}

/* The reservation that holds all of [ptr, ptr + bytes), whole pages; NULL where there is none. */
static struct cu_region *reservation(CUdeviceptr ptr, uint64_t bytes)
{
	struct cu_region *r = cu_region_at(ptr);

	if (r == NULL || r->kind != CU_REGION_RESERVED || ptr % CU_PAGE_BYTES != 0 || !whole_pages(bytes) ||
	    bytes > r->bytes || ptr - r->base > r->bytes - bytes)
		return NULL;
	return r;
}

static struct cu_mapping **page_at(struct cu_region *r, CUdeviceptr ptr)
{
	return &r->mappings[(ptr - r->base) / CU_PAGE_BYTES];
}

CU_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
			    unsigned long long flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = reservation(ptr, bytes);
	struct cu_physical *p = cu_physical_of(handle);

	if (r == NULL || p == NULL || flags != 0 || offset % CU_PAGE_BYTES != 0 || bytes > p->bytes ||
	    offset > p->bytes - bytes)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct cu_mapping **pages = page_at(r, ptr);

	for (uint64_t i = 0; i < bytes / CU_PAGE_BYTES; i++)
		if (pages[i] != NULL)
			return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct cu_mapping *m = malloc(sizeof *m);

	if (m == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	*m = (struct cu_mapping) { .base = ptr, .bytes = bytes, .offset = offset, .physical = p };
	for (uint64_t i = 0; i < bytes / CU_PAGE_BYTES; i++)
		pages[i] = m;
	p->mapped++;
	return cu_leave(CUDA_SUCCESS);
}

/* Whether [ptr, ptr + bytes) is made of whole mappings. */
static bool whole_mappings(struct cu_region *r, CUdeviceptr ptr, uint64_t bytes)
{
	CUdeviceptr at = ptr;

	while (at < ptr + bytes) {
		const struct cu_mapping *m = *page_at(r, at);

		if (m == NULL || m->base != at)
			return false;
		at += m->bytes;
	}
	return at == ptr + bytes;
}

CU_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = reservation(ptr, bytes);

	if (r == NULL || !whole_mappings(r, ptr, bytes))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	for (CUdeviceptr at = ptr; at < ptr + bytes;) {
		struct cu_mapping *m = *page_at(r, at);

		for (uint64_t i = 0; i < m->bytes / CU_PAGE_BYTES; i++)
			page_at(r, at)[i] = NULL;
		at += m->bytes;
		m->physical->mapped--;
		cu_physical_put(m->physical);
		free(m);
	}
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = reservation(ptr, bytes);

	if (r == NULL || desc == NULL || count == 0 || !whole_mappings(r, ptr, bytes))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || desc[i].location.id < 0 ||
		    (unsigned)desc[i].location.id >= cu.count)
			return cu_leave(CUDA_ERROR_INVALID_DEVICE);
		for (CUdeviceptr at = ptr; at < ptr + bytes; at += (*page_at(r, at))->bytes)
			if ((*page_at(r, at))->physical->device == (unsigned)desc[i].location.id)
				(*page_at(r, at))->access = desc[i].flags;
	}
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *where, CUdeviceptr ptr)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = cu_region_at(ptr);
	const struct cu_mapping *m = r != NULL && r->kind == CU_REGION_RESERVED ? cu_mapping_at(r, ptr) : NULL;

	if (out == NULL || where == NULL || m == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	bool own = where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id == (int)m->physical->device;

	*out = own ? (unsigned long long)m->access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	const struct cu_physical *p = cu_physical_of(handle);

	if (out == NULL || p == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = p->prop;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *ptr)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = cu_region_at((uintptr_t)ptr);
	const struct cu_mapping *m =
		r != NULL && r->kind == CU_REGION_RESERVED ? cu_mapping_at(r, (uintptr_t)ptr) : NULL;

	if (out == NULL || m == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	m->physical->refs++;
	*out = (uintptr_t)m->physical;
	return cu_leave(CUDA_SUCCESS);
}
