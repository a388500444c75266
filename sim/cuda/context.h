/* The life of contexts. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_CONTEXT_H
#define HM_SIM_CUDA_CONTEXT_H

#include "sim/cuda/state.h"

/* Charges the context's overhead and brings it to life; ctx->device, flags and api_version are set. */
CUresult cu_context_open(struct CUctx_st *ctx, uint64_t overhead_bytes);
/* Frees all it owns and gives its overhead back. The caller has waited for its work (cu_wait). */
void cu_context_close(struct CUctx_st *ctx);

/* One user more of a device's primary context, or one less. */
CUresult cu_primary_retain(unsigned device);
void cu_primary_release(unsigned device);
void cu_limits_reset(struct CUctx_st *ctx); /* as a new context has them */

#endif
