/* Physical memory (cuMemCreate) and its mappings into reserved addresses. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_VMM_H
#define HM_SIM_CUDA_VMM_H

#include "sim/cuda/state.h"

struct cu_region;

/* Lives while it has a reference (handles given out, each to be released) or a mapping. */
struct cu_physical {
	unsigned device;
	uint64_t bytes;
	CUmemAllocationProp prop;
	unsigned refs, mapped;
	char *backing;
};

struct cu_mapping {
	CUdeviceptr base;
	uint64_t bytes, offset; /* offset into the physical memory */
	struct cu_physical *physical;
	int access; /* CU_MEM_ACCESS_FLAGS_*, of its own device */
};

struct cu_mapping *cu_mapping_at(const struct cu_region *r, CUdeviceptr ptr); /* NULL: nothing mapped there */
/* Host memory behind ptr; NULL where access is not given. */
char *cu_mapping_memory(const struct cu_mapping *m, CUdeviceptr ptr, bool writes);

#endif
