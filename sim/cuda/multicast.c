/* Multicast objects: addresses behind which each device of a group has memory of its own. The object has no memory;
 * what is bound to it stays until it is unbound. What is written to its addresses reaches no bound memory. */
#include "sim/cuda/multicast.h"

#include <stdlib.h>

#include "sim/cuda/handles.h"
#include "sim/cuda/space.h"
#include "sim/cuda/vmm.h"

struct bind {
	struct link link;
	struct cu_physical *memory;
	uint64_t offset, bytes; /* in the object */
};

struct cu_multicast {
	unsigned wanted; /* devices */
	uint32_t added;  /* a bit for each */
	struct link binds;
};

/* Cards with a switch between them, of the generation that has it. */
bool cu_multicast_supported(unsigned device)
{
	const struct sim_card_info *info = cu_info(device);

	return info->cc_major >= 9 && info->links[0].remote == SIM_LINK_SWITCH;
}

static void bind_free(struct bind *b)
{
	link_remove(&b->link);
	b->memory->mapped--;
	cu_physical_put(b->memory);
	free(b);
}

void cu_multicast_free(struct cu_multicast *m)
{
	LIST_FOR_EACH (&m->binds, it)
		bind_free(HM_CONTAINER(it, struct bind, link));
	free(m);
}

static CUresult check(const CUmulticastObjectProp *p)
{
	const unsigned types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
	unsigned able = 0;

	if (p == NULL || p->numDevices == 0 || p->flags != 0 || (p->handleTypes & ~(unsigned long long)types) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < cu.count; i++)
		able += cu_multicast_supported(i);
	if (able == 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return p->numDevices <= able ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CU_EXPORT CUresult cuMulticastGetGranularity(size_t *out, const CUmulticastObjectProp *prop,
					     CUmulticastGranularity_flags option)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = out == NULL || option < 0 || option > 1 ? CUDA_ERROR_INVALID_VALUE : check(prop);
	if (rc == CUDA_SUCCESS)
		*out = CU_PAGE_BYTES;
	return cu_leave(rc);
}

CU_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : check(prop);
	if (rc == CUDA_SUCCESS && (prop->size == 0 || prop->size % CU_PAGE_BYTES != 0))
		rc = CUDA_ERROR_INVALID_VALUE;
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	struct cu_multicast *m = calloc(1, sizeof *m);

	if (m == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	m->wanted = prop->numDevices;
	list_init(&m->binds);
	rc = cu_physical_multicast(out, prop->size, m);
	if (rc != CUDA_SUCCESS)
		free(m);
	return cu_leave(rc);
}

/* Takes the lock and looks an object up. */
static CUresult enter_multicast(CUmemGenericAllocationHandle handle, struct cu_physical **out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = cu_physical_of(handle);
	return *out != NULL && (*out)->multicast != NULL ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

CU_EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	struct cu_physical *p;
	CUresult rc = enter_multicast(handle, &p);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_multicast *m = p->multicast;

	if (dev < 0 || (unsigned)dev >= cu.count)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	if (!cu_multicast_supported((unsigned)dev))
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
	if ((m->added >> dev & 1) != 0 || (unsigned)__builtin_popcount(m->added) == m->wanted)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	m->added |= 1U << dev;
	return cu_leave(CUDA_SUCCESS);
}

static bool taken(const struct cu_multicast *m, unsigned device, uint64_t offset, uint64_t bytes)
{
	LIST_FOR_EACH (&m->binds, it) {
		const struct bind *b = HM_CONTAINER(it, struct bind, link);

		if (b->memory->device == device && offset < b->offset + b->bytes && b->offset < offset + bytes)
			return true;
	}
	return false;
}

/* `memory_offset` bytes into the memory. */
static CUresult bind(struct cu_physical *object, uint64_t offset, struct cu_physical *memory, uint64_t memory_offset,
		     uint64_t bytes, unsigned long long flags)
{
	struct cu_multicast *m = object->multicast;

	if (memory == NULL || memory->multicast != NULL || flags != 0 || bytes == 0 ||
	    (bytes | offset | memory_offset) % CU_PAGE_BYTES != 0 || bytes > object->bytes ||
	    offset > object->bytes - bytes || bytes > memory->bytes || memory_offset > memory->bytes - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)__builtin_popcount(m->added) != m->wanted) /* first all devices, then memory */
		return CUDA_ERROR_INVALID_VALUE;
	if ((m->added >> memory->device & 1) == 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (taken(m, memory->device, offset, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	struct bind *b = calloc(1, sizeof *b);

	if (b == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*b = (struct bind) { .memory = memory, .offset = offset, .bytes = bytes };
	memory->mapped++;
	link_append(&m->binds, &b->link);
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
				      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
				      unsigned long long flags)
{
	struct cu_physical *p;
	CUresult rc = enter_multicast(handle, &p);

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(bind(p, offset, cu_physical_of(memory), memory_offset, bytes, flags));
}

CU_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr ptr,
				       size_t bytes, unsigned long long flags)
{
	struct cu_physical *p;
	CUresult rc = enter_multicast(handle, &p);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_region *r = cu_region_at(ptr);
	const struct cu_mapping *m = r != NULL && r->kind == CU_REGION_RESERVED ? cu_mapping_at(r, ptr) : NULL;

	if (m == NULL || bytes > m->bytes || ptr - m->base > m->bytes - bytes)
		return cu_leave(CUDA_ERROR_INVALID_VALUE); /* of mapped memory only, in one piece */
	return cu_leave(bind(p, offset, m->physical, m->offset + (ptr - m->base), bytes, flags));
}

CU_EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset, size_t bytes)
{
	struct cu_physical *p;
	CUresult rc = enter_multicast(handle, &p);

	if (rc != CUDA_SUCCESS)
		return rc;
	LIST_FOR_EACH (&p->multicast->binds, it) {
		struct bind *b = HM_CONTAINER(it, struct bind, link);

		if ((int)b->memory->device == dev && b->offset == offset && b->bytes == bytes) {
			bind_free(b);
			return cu_leave(CUDA_SUCCESS);
		}
	}
	return cu_leave(CUDA_ERROR_INVALID_VALUE);
}
