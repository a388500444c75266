/* Frees an allocation of cuMemAlloc, Pitch, Managed or a pool, whichever call asks. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_MEM_H
#define HM_SIM_CUDA_MEM_H

#include "sim/cuda/state.h"

struct cu_region;

/* INVALID_VALUE where ptr is not the start of an allocation. */
CUresult cu_mem_free(CUdeviceptr ptr);

/* Managed memory takes room on the card when the card first touches it, as far as there is any; what does not fit stays
 * with the host. */
void cu_managed_touch(struct cu_region *r);

#endif
