/* The CUDA 2 interface (32-bit sizes and pointers), still exported beside its _v2. What of it we wrap. */
#ifndef HM_ABI_CUDA_V1_H
#define HM_ABI_CUDA_V1_H

#include "abi/cuda.h"

typedef unsigned CUdeviceptr_v1;

CUresult cuMemAlloc(CUdeviceptr_v1 *out, unsigned bytes);
CUresult cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width, unsigned height, unsigned element_bytes);
CUresult cuMemFree(CUdeviceptr_v1 ptr);
CUresult cuMemGetInfo(unsigned *free, unsigned *total);
CUresult cuDeviceTotalMem(unsigned *out, CUdevice dev);

#endif
