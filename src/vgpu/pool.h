/* Stream-ordered memory: a pool is charged for what it has taken from its card, used or not. */
#ifndef HM_VGPU_POOL_H
#define HM_VGPU_POOL_H

#include <stdbool.h>

#include "abi/cuda.h"
#include "vgpu/state.h"

/* A call that would make a graph node instead of allocating or freeing. Never ends a capture. */
bool stream_is_capturing(CUstream stream, bool per_thread);

/* A pool's allocation has been freed; the record is freed too. */
void pool_pointer_freed(struct vgpu *v, struct record *r);
/* Reads again what all pools hold: a synchronisation may have given memory back. */
void pools_refresh(struct vgpu *v);

/* The memory of a device's graphs counts as a pool. Makes its charge what is reserved, of which `booked` bytes are
 * charged already. False: over the limit; it is charged all the same. */
bool pool_settle_graphs(struct vgpu *v, CUdevice device, uint64_t booked);
/* False: the driver does not say. */
bool pool_graph_memory(CUdevice device, uint64_t *reserved, uint64_t *used);

#endif
