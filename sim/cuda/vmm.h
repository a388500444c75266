/* Physical memory (cuMemCreate) and its mappings into reserved addresses. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_VMM_H
#define HM_SIM_CUDA_VMM_H

#include "sim/cuda/state.h"

struct cu_region;
struct cu_multicast; /* multicast.h */

/* Lives while it has a reference (handles given out, each to be released) or a mapping. */
struct cu_physical {
	unsigned device;
	uint64_t bytes;
	CUmemAllocationProp prop;
	unsigned refs, mapped;          /* mapped: also by what is bound to multicast objects */
	bool free_of_charge;            /* imported, or a multicast object */
	int fd;                         /* of the memory file that the backing is; -1: none */
	struct cu_multicast *multicast; /* NULL: memory */
	char *backing;
};

struct cu_mapping {
	CUdeviceptr base;
	uint64_t bytes, offset; /* offset into the physical memory */
	struct cu_physical *physical;
	int access; /* CU_MEM_ACCESS_FLAGS_*, of its own device */
};

/* The memory that a handle names; NULL where it names none. */
struct cu_physical *cu_physical_of(CUmemGenericAllocationHandle handle);
void cu_physical_put(struct cu_physical *p); /* frees it where nothing keeps it */
/* Another process's memory; takes the descriptor of its memory file, also on failure. */
CUresult cu_physical_import(CUmemGenericAllocationHandle *out, int take_fd, uint64_t bytes,
			    const CUmemAllocationProp *prop);
/* An object without memory; takes m on success, and the descriptor, -1 where it has none, always. */
CUresult cu_physical_multicast(CUmemGenericAllocationHandle *out, uint64_t bytes, struct cu_multicast *take_m,
			       int take_fd);

struct cu_mapping *cu_mapping_at(const struct cu_region *r, CUdeviceptr ptr); /* NULL: nothing mapped there */
/* Host memory behind ptr; NULL where access is not given. */
char *cu_mapping_memory(const struct cu_mapping *m, CUdeviceptr ptr, bool writes);

#endif
