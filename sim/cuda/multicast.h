/* Multicast objects, as vmm.h keeps them. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_MULTICAST_H
#define HM_SIM_CUDA_MULTICAST_H

#include "sim/cuda/state.h"

struct cu_multicast;

bool cu_multicast_supported(unsigned device);
void cu_multicast_free(struct cu_multicast *m); /* gives what is bound back, unless it was shared */
/* Others may have it from now on. */
void cu_multicast_shared(struct cu_multicast *m);
/* Another process's object of so many bytes; takes the descriptor, also on failure. */
CUresult cu_multicast_import(CUmemGenericAllocationHandle *out, int take_fd, uint64_t bytes);

#endif
