/* What an array takes at most, where the driver does not say. */
#ifndef HM_VGPU_ARRAY_SIZE_H
#define HM_VGPU_ARRAY_SIZE_H

#include <stdint.h>

#include "abi/cuda_array.h"

/* Bytes of an array's first `levels` mip levels, in whole pages of 64 KiB; UINT64_MAX: beyond any card. An upper bound
 * for formats of compressed blocks and those not known here, exact for the others. */
uint64_t array_size(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels);

#endif
