/* A library that calls the driver by name; opened with RTLD_DEEPBIND. */
#include "abi/cuda_api.h"

#define EXPORT __attribute__((visibility("default")))

CUresult deep_alloc(CUdeviceptr *out, size_t bytes);
CUresult deep_free(CUdeviceptr what);

EXPORT CUresult deep_alloc(CUdeviceptr *out, size_t bytes)
{
	return cuMemAlloc_v2(out, bytes);
}

EXPORT CUresult deep_free(CUdeviceptr what)
{
	return cuMemFree_v2(what);
}
