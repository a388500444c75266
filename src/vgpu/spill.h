/* Oversubscription: an allocation that the container's limit has room for and the card has not is made in managed
 * memory, whose pages the driver keeps on the card as far as it can and with the host otherwise. Only where the limit
 * file (or HAMi's environment) asks for it. */
#ifndef HM_VGPU_SPILL_H
#define HM_VGPU_SPILL_H

#include <stddef.h>

#include "abi/cuda.h"
#include "vgpu/booking.h"

/* For an allocation that is booked and that the driver has refused for want of memory: CUDA_SUCCESS with *out, or
 * CUDA_ERROR_OUT_OF_MEMORY as before. */
CUresult spill(struct booking *b, CUdeviceptr *out, size_t bytes);
/* Says in the region that it came to that. */
void spill_count(struct vgpu *v, const struct vgpu_card *card, uint64_t bytes);

#endif
