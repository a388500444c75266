/* CUDA arrays and mipmapped arrays: charged when created, given back when destroyed. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_ARRAY_H
#define HM_SIM_CUDA_ARRAY_H

#include "sim/cuda/state.h"

void cu_arrays_drop(struct CUctx_st *ctx); /* all of a dying context */

#endif
