/* Kernel launches, apart from the calls that make them: from a stream, from a graph. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_LAUNCH_H
#define HM_SIM_CUDA_LAUNCH_H

#include "sim/cuda/kernels.h"
#include "sim/cuda/stream.h"

/* Looks the function up and reads the parameters; the shape is set. A module's function belongs to its context, a
 * library's to all. */
CUresult cu_launch_fill(struct cu_launch *l, struct CUctx_st *ctx, const void *function, void **params, void **extra);
/* Does the kernel's work and queues its time on the stream. A fault in the kernel is the context's, not the call's. */
CUresult cu_launch_run(const struct cu_launch *l, const struct cu_stream_ref *s);

#endif
