/* Copies and fills, apart from the calls that make them. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_COPY_H
#define HM_SIM_CUDA_COPY_H

#include "sim/cuda/state.h"

/* What the call says of an address: ANY may be both. */
enum cu_side { CU_SIDE_HOST, CU_SIDE_DEVICE, CU_SIDE_ANY };

struct cu_copy {
	enum cu_side to, from;
	CUdeviceptr dst, src;
	size_t bytes;
};

struct cu_fill {
	CUdeviceptr dst;
	unsigned value, width; /* width: 1, 2 or 4; the address must be a multiple of it */
	size_t count;
};

CUresult cu_copy_run(const struct cu_copy *c);
CUresult cu_fill_run(const struct cu_fill *f);

#endif
