/* Page-locked host memory: allocated (cuMemHostAlloc) or registered. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_HOST_MEM_H
#define HM_SIM_CUDA_HOST_MEM_H

#include "sim/cuda/state.h"

struct cu_host {
	struct link link; /* on its context's list */
	struct CUctx_st *ctx;
	uintptr_t base;
	uint64_t bytes;
	unsigned flags;
	bool registered; /* the program's own memory */
};

struct cu_host *cu_host_at(uintptr_t ptr);      /* NULL: not page-locked by us */
bool cu_host_covers(uintptr_t ptr, uint64_t n); /* whether all of it is, in one piece */
void cu_hosts_drop(struct CUctx_st *ctx);

#endif
