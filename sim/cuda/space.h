/* The device address space of this process: one reserved stretch of host addresses that cannot be read or written by
 * the host (managed memory apart), cut in pages of 2 MiB. A region is a run of pages; what is behind them is ordinary
 * host memory elsewhere, committed when first touched, so that an allocation of 80 GiB costs nothing until it is used.
 * Under the lock of state.h. */
#ifndef HM_SIM_CUDA_SPACE_H
#define HM_SIM_CUDA_SPACE_H

#include "sim/cuda/granules.h"
#include "sim/cuda/state.h"

enum cu_region_kind {
	CU_REGION_BLOCK,     /* 2 MiB of small cuMemAlloc allocations, cut in granules */
	CU_REGION_LARGE,     /* one cuMemAlloc allocation */
	CU_REGION_MANAGED,   /* one cuMemAllocManaged allocation: the host uses the same addresses */
	CU_REGION_POOL,      /* a chunk of a memory pool, cut in granules */
	CU_REGION_GRAPH,     /* one allocation of a graph: has memory while it is live */
	CU_REGION_IMPORT,    /* memory of another process or interface: not charged */
	CU_REGION_VARIABLES, /* of a module: not the program's to free */
	CU_REGION_RESERVED,  /* cuMemAddressReserve: empty pages, or mapped physical memory */
};

struct cu_mapping;     /* vmm.h */
struct cu_graph_alloc; /* graph_memory.h */

/* What the program said of a MANAGED allocation; places: a device, -1 the host, -2 none. */
struct cu_advice {
	bool read_mostly;
	int preferred, prefetched;
	uint32_t accessed_by; /* bit 0: the host; bit n + 1: device n */
};

/* Whose memory an IMPORT is. */
struct cu_import {
	uint32_t pid;    /* the other process; 0: none that we know */
	uint64_t id;     /* its region's */
	uint64_t offset; /* of the allocation in the region */
	unsigned opens;
	bool freed_by_free; /* cuMemFree, not cuIpcCloseMemHandle */
};

struct cu_region {
	struct link link; /* on the list of all regions */
	struct link
		room; /* BLOCK: on its context's list of blocks with room left; POOL: on its pool's list of chunks */
	enum cu_region_kind kind;
	uint64_t id; /* never reused */
	CUdeviceptr base;
	uint64_t bytes; /* of pages */
	uint64_t size;  /* LARGE, MANAGED, GRAPH, IMPORT: of the allocation */
	uint64_t charged;
	unsigned device;
	struct CUctx_st *ctx;               /* owner; NULL for RESERVED and POOL */
	CUmemoryPool pool;                  /* POOL */
	struct cu_graph_alloc *graph_alloc; /* GRAPH */
	int fd;                             /* of the memory file that the backing is; -1: none */
	struct cu_import import;            /* IMPORT */
	struct cu_advice advice;            /* MANAGED */
	char *backing;                      /* NULL for RESERVED */
	uint64_t granule_bytes;
	struct granules granules;     /* BLOCK, POOL */
	struct cu_mapping **mappings; /* RESERVED: of each page, NULL where nothing is mapped */
};

extern struct link cu_regions;

/* A new region with backing (not for RESERVED), not charged yet; `hint` 0 or an address wanted. NULL where addresses
 * or host memory have run out. align: a power of 2. */
struct cu_region *cu_region_new(enum cu_region_kind kind, unsigned device, uint64_t bytes, uint64_t align,
				CUdeviceptr hint);
/* Charges the card and frees the region if that fails: the code of the allocating call. */
CUresult cu_region_charge(struct cu_region **r);
/* Frees it and gives its charge back; NULL is fine. */
void cu_region_free(struct cu_region *r);

struct cu_region *cu_region_at(CUdeviceptr ptr); /* NULL: no region there */

/* The allocation that ptr points into. */
struct cu_extent {
	struct cu_region *region;
	CUdeviceptr base;
	uint64_t size;
};
bool cu_extent_at(CUdeviceptr ptr, struct cu_extent *out);

/* Host memory behind [ptr, ptr + *n): where it is, *n cut to what lies in one piece; NULL where the address is not
 * device memory (or is mapped without access). */
char *cu_window(CUdeviceptr ptr, uint64_t *n, bool writes);
/* Whether all of [ptr, ptr + n) may be accessed. */
bool cu_window_covers(CUdeviceptr ptr, uint64_t n, bool writes);

/* Whether ptr is an address of the device space at all. */
bool cu_is_device_address(CUdeviceptr ptr);

void *cu_backing_new(uint64_t bytes); /* NULL: out of host memory */
void cu_backing_free(void *p, uint64_t bytes);

static inline uint64_t cu_round(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

#endif
