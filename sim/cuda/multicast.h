/* Multicast objects, as vmm.h keeps them. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_MULTICAST_H
#define HM_SIM_CUDA_MULTICAST_H

#include "sim/cuda/state.h"

struct cu_multicast;

bool cu_multicast_supported(unsigned device);
void cu_multicast_free(struct cu_multicast *m); /* gives what is bound back */

#endif
