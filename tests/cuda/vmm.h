/* Virtual memory management in a few lines, for several topics. */
#ifndef HM_TESTS_CUDA_VMM_H
#define HM_TESTS_CUDA_VMM_H

#include "check.h"

/* Ends the program as not available where the card has none. Card 0's context is current then. */
void vmm_need(void);

/* cuMemCreate on a card, with handle types that can be exported. */
CUresult vmm_create(CUmemGenericAllocationHandle *out, size_t bytes, int card, int handle_types);

/* An address range with the handle mapped, readable and writable on the card. */
CUdeviceptr vmm_map(CUmemGenericAllocationHandle handle, size_t bytes, int card);
void vmm_unmap(CUdeviceptr at, size_t bytes);

#endif
