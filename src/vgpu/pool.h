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

#endif
