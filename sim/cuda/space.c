#include "sim/cuda/space.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cuda/graph_memory.h"
#include "sim/cuda/vmm.h"

/* Eight cards of the largest kind fit many times; less is taken where the process may not have so many addresses. */
#define SPACE_BYTES ((uint64_t)8 << 40)
#define SPACE_BYTES_MIN ((uint64_t)64 << 30)

struct link cu_regions = { &cu_regions, &cu_regions };

static struct {
	CUdeviceptr base; /* 0: not reserved yet */
	uint64_t pages;
	struct cu_region **owner; /* of each page */
	uint64_t next;            /* where the search for free pages starts */
} space;

void *cu_backing_new(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

void cu_backing_free(void *p, uint64_t bytes)
{
	if (p != NULL)
		munmap(p, bytes);
}

static bool space_open(void)
{
	if (space.base != 0)
		return true;
	for (uint64_t bytes = SPACE_BYTES; bytes >= SPACE_BYTES_MIN; bytes /= 2) {
		void *p = mmap(NULL, bytes + CU_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0);

		if (p == MAP_FAILED)
			continue;
		space.owner = cu_backing_new(bytes / CU_PAGE_BYTES * sizeof space.owner[0]);
		if (space.owner == NULL) {
			munmap(p, bytes + CU_PAGE_BYTES);
			continue;
		}
		space.base = cu_round((uint64_t)(uintptr_t)p, CU_PAGE_BYTES);
		space.pages = bytes / CU_PAGE_BYTES;
		return true;
	}
	return false;
}

bool cu_is_device_address(CUdeviceptr ptr)
{
	return space.base != 0 && ptr >= space.base && (ptr - space.base) / CU_PAGE_BYTES < space.pages;
}

struct cu_region *cu_region_at(CUdeviceptr ptr)
{
	return cu_is_device_address(ptr) ? space.owner[(ptr - space.base) / CU_PAGE_BYTES] : NULL;
}

/* The first owner among pages [at, at + n), or NULL where all are free. */
static struct cu_region *taken_by(uint64_t at, uint64_t n)
{
	for (uint64_t i = at; i < at + n; i++)
		if (space.owner[i] != NULL)
			return space.owner[i];
	return NULL;
}

static uint64_t aligned_page(uint64_t page, uint64_t align)
{
	return (cu_round(space.base + page * CU_PAGE_BYTES, align) - space.base) / CU_PAGE_BYTES;
}

/* Next fit: n free pages at or behind `from`; space.pages where there are none. Skips whole regions. */
static uint64_t search(uint64_t from, uint64_t n, uint64_t align)
{
	uint64_t at = aligned_page(from, align);

	while (at + n <= space.pages) {
		const struct cu_region *r = taken_by(at, n);

		if (r == NULL)
			return at;
		at = aligned_page((r->base + r->bytes - space.base) / CU_PAGE_BYTES, align);
	}
	return space.pages;
}

static CUdeviceptr find_pages(uint64_t bytes, uint64_t align, CUdeviceptr hint)
{
	uint64_t n = bytes / CU_PAGE_BYTES, at = space.pages;

	if (n > space.pages)
		return 0;
	if (cu_is_device_address(hint) && hint % HM_MAX(align, CU_PAGE_BYTES) == 0) {
		at = (hint - space.base) / CU_PAGE_BYTES;
		if (at + n > space.pages || taken_by(at, n) != NULL)
			at = space.pages;
	}
	if (at == space.pages)
		at = search(space.next, n, align);
	if (at == space.pages)
		at = search(0, n, align);
	if (at == space.pages)
		return 0;
	space.next = at + n;
	return space.base + at * CU_PAGE_BYTES;
}

static void own(CUdeviceptr base, uint64_t bytes, struct cu_region *owner)
{
	uint64_t at = (base - space.base) / CU_PAGE_BYTES;

	for (uint64_t i = at; i < at + bytes / CU_PAGE_BYTES; i++)
		space.owner[i] = owner;
}

/* Managed memory is its own backing: the host may use the pages at their device addresses. */
static char *backing_of(const struct cu_region *r)
{
	if (r->kind == CU_REGION_MANAGED) {
		void *p = (void *)(uintptr_t)r->base;

		return mprotect(p, r->bytes, PROT_READ | PROT_WRITE) == 0 ? p : NULL;
	}
	return cu_backing_new(r->bytes);
}

struct cu_region *cu_region_new(enum cu_region_kind kind, unsigned device, uint64_t bytes, uint64_t align,
				CUdeviceptr hint)
{
	static uint64_t last_id;
	struct cu_region *r = calloc(1, sizeof *r);

	if (r == NULL || !space_open())
		goto failed;
	r->kind = kind;
	r->fd = -1;
	r->device = device;
	r->id = ++last_id;
	r->bytes = cu_round(bytes, CU_PAGE_BYTES);
	r->base = find_pages(r->bytes, HM_MAX(align, CU_PAGE_BYTES), hint);
	if (r->base == 0)
		goto failed;
	if (kind != CU_REGION_RESERVED && kind != CU_REGION_IMPORT) {
		r->backing = backing_of(r);
		if (r->backing == NULL)
			goto failed;
	}
	own(r->base, r->bytes, r);
	link_append(&cu_regions, &r->link);
	return r;
failed:
	free(r);
	return NULL;
}

CUresult cu_region_charge(struct cu_region **r)
{
	CUresult rc = cu_charge((*r)->device, SIM_MEM_DATA, (*r)->bytes);

	if (rc != CUDA_SUCCESS) {
		cu_region_free(*r);
		*r = NULL;
		return rc;
	}
	(*r)->charged = (*r)->bytes;
	return CUDA_SUCCESS;
}

void cu_region_free(struct cu_region *r)
{
	if (r == NULL)
		return;
	cu_discharge(r->device, SIM_MEM_DATA, r->charged);
	own(r->base, r->bytes, NULL);
	if (r->kind == CU_REGION_MANAGED) /* fresh pages that nobody may touch, in place of the old ones */
		mmap((void *)(uintptr_t)r->base, r->bytes, PROT_NONE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else
		cu_backing_free(r->backing, r->bytes);
	if (r->fd >= 0)
		close(r->fd);
	granules_fini(&r->granules);
	free(r->mappings);
	link_remove(&r->link);
	link_remove(&r->room);
	free(r);
}

bool cu_extent_at(CUdeviceptr ptr, struct cu_extent *out)
{
	struct cu_region *r = cu_region_at(ptr);
	size_t start, n;

	if (r == NULL)
		return false;
	*out = (struct cu_extent) { .region = r, .base = r->base, .size = r->size };
	switch (r->kind) {
	case CU_REGION_LARGE:
	case CU_REGION_VARIABLES:
	case CU_REGION_MANAGED: return ptr - r->base < r->size;
	case CU_REGION_IMPORT:
		out->base = r->base + r->import.offset;
		return ptr >= out->base && ptr - out->base < r->size;
	case CU_REGION_GRAPH: return r->graph_alloc->live && ptr - r->base < r->size;
	case CU_REGION_BLOCK:
	case CU_REGION_POOL:
		start = granules_find(&r->granules, (ptr - r->base) / r->granule_bytes, &n);
		if (start == SIZE_MAX)
			return false;
		out->base = r->base + start * r->granule_bytes;
		out->size = n * r->granule_bytes;
		return true;
	case CU_REGION_RESERVED: break;
	}
	const struct cu_mapping *m = cu_mapping_at(r, ptr);

	if (m == NULL)
		return false;
	out->base = m->base;
	out->size = m->bytes;
	return true;
}

char *cu_window(CUdeviceptr ptr, uint64_t *n, bool writes)
{
	struct cu_extent x;

	if (!cu_extent_at(ptr, &x))
		return NULL;
	*n = HM_MIN(*n, x.base + x.size - ptr);
	if (x.region->kind == CU_REGION_RESERVED)
		return cu_mapping_memory(cu_mapping_at(x.region, ptr), ptr, writes);
	return x.region->backing + (ptr - x.region->base);
}

bool cu_window_covers(CUdeviceptr ptr, uint64_t n, bool writes)
{
	while (n > 0) {
		uint64_t here = n;
		struct cu_extent x;

		if (cu_window(ptr, &here, writes) == NULL)
			return false;
		/* Only mapped physical memory goes on across its pieces; an allocation ends where it ends. */
		if (here < n && cu_extent_at(ptr, &x) && x.region->kind != CU_REGION_RESERVED)
			return false;
		ptr += here;
		n -= here;
	}
	return true;
}
