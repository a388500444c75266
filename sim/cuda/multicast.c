/* Multicast objects: addresses behind which each device of a group has memory of its own. The object has no memory;
 * what is bound to it stays until it is unbound, or the object ends; of one that other processes can have, until this
 * process ends. What is written to its addresses reaches no bound memory. */
#include "sim/cuda/multicast.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/share.h"
#include "sim/cuda/space.h"
#include "sim/cuda/vmm.h"

struct bind {
	struct link link;
	struct cu_physical *memory;
	uint64_t offset, bytes; /* in the object */
};

/* What all processes that have the object see. */
struct team {
	unsigned wanted;        /* cards */
	_Atomic uint32_t added; /* a bit for each */
};

/* The file's last page. */
struct team_page {
	struct cu_note note;
	struct team team;
};

struct cu_multicast {
	struct link link;       /* on `lasting` once it has ended, if it was shared */
	struct team *team, own; /* team: own, or in `page` */
	struct team_page *page; /* mapped; NULL: cannot be shared */
	bool shared;
	struct link binds;
};

static struct link lasting = { &lasting, &lasting };

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

static void multicast_free(struct cu_multicast *m)
{
	if (m->page != NULL)
		munmap(m->page, sizeof *m->page);
	free(m);
}

void cu_multicast_free(struct cu_multicast *m)
{
	if (m->shared) { /* it may live on elsewhere: what is bound stays */
		link_append(&lasting, &m->link);
		return;
	}
	LIST_FOR_EACH (&m->binds, it)
		bind_free(HM_CONTAINER(it, struct bind, link));
	multicast_free(m);
}

void cu_multicast_shared(struct cu_multicast *m)
{
	m->shared = true;
}

static struct cu_multicast *multicast_new(unsigned wanted)
{
	struct cu_multicast *m = calloc(1, sizeof *m);

	if (m == NULL)
		return NULL;
	m->own.wanted = wanted;
	m->team = &m->own;
	list_init(&m->binds);
	return m;
}

static bool map_team(struct cu_multicast *m, int fd, uint64_t bytes)
{
	m->page = cu_share_map(fd, bytes, sizeof *m->page);
	if (m->page == NULL)
		return false;
	m->team = &m->page->team;
	return true;
}

CUresult cu_multicast_import(CUmemGenericAllocationHandle *out, int take_fd, uint64_t bytes)
{
	struct cu_multicast *m = multicast_new(0);

	if (m == NULL || !map_team(m, take_fd, bytes)) {
		free(m);
		close(take_fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->shared = true;
	CUresult rc = cu_physical_multicast(out, bytes, m, take_fd);

	if (rc != CUDA_SUCCESS)
		multicast_free(m);
	return rc;
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

/* The file that others get: of the object's size, as its addresses have memory behind them. -1: there is none. */
static int file_of(const CUmulticastObjectProp *prop, struct cu_multicast *m)
{
	struct cu_note note = { .kind = CU_SHARE_MULTICAST,
				.handle_types = (uint32_t)prop->handleTypes,
				.bytes = prop->size };
	hm_auto_fd fd = cu_share_file(&note);

	if (fd < 0 || !map_team(m, fd, prop->size))
		return -1;
	m->team->wanted = prop->numDevices;
	return hm_steal_fd(&fd);
}

static CUresult create(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	struct cu_multicast *m = multicast_new(prop->numDevices);
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

	if (m == NULL)
		return rc;
	int fd = prop->handleTypes != 0 ? file_of(prop, m) : -1;

	if (fd >= 0 || prop->handleTypes == 0)
		rc = cu_physical_multicast(out, prop->size, m, fd);
	if (rc != CUDA_SUCCESS)
		multicast_free(m);
	return rc;
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
	return cu_leave(create(out, prop));
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

static uint32_t bit_of(unsigned device)
{
	return 1U << cu.devices[device].card;
}

CU_EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	struct cu_physical *p;
	CUresult rc = enter_multicast(handle, &p);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct team *team = p->multicast->team;

	if (dev < 0 || (unsigned)dev >= cu.count)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	if (!cu_multicast_supported((unsigned)dev))
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
	uint32_t bit = bit_of((unsigned)dev), added = team->added;

	do {
		if ((added & bit) != 0 || (unsigned)__builtin_popcount(added) >= team->wanted)
			return cu_leave(CUDA_ERROR_INVALID_VALUE);
	} while (!atomic_compare_exchange_weak(&team->added, &added, added | bit));
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
	if (m->page != NULL && memory->fd < 0)
		return CUDA_ERROR_INVALID_VALUE;                             /* only memory that can be shared, too */
	if ((unsigned)__builtin_popcount(m->team->added) != m->team->wanted) /* first all devices, then memory */
		return CUDA_ERROR_INVALID_VALUE;
	if ((m->team->added & bit_of(memory->device)) == 0)
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
