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
/* Reads again what all pools hold, and all graphs: a synchronisation may have given memory back. */
void pools_refresh(struct vgpu *v);

/* For pool_alloc.c. Records of pools change only under the pools' lock (v->pool_lock). Their `bytes` are what the pool
 * is charged for, `refs` its live allocations, `owner` its device, `mappings` its release threshold in pages of 2 MiB;
 * `small` marks one whose memory is the host's, `pooled` one that was destroyed: it lives on until its last allocation
 * is freed. */
bool pool_attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *out);
/* NULL also for one that was destroyed: its address may be used again. */
struct record *pool_find(struct vgpu *v, CUmemoryPool pool);
/* NULL: no memory. */
struct record *pool_add(struct vgpu *v, CUmemoryPool pool, CUdevice device, bool on_host);
/* Makes the pool's charge what it holds now, of which `booked` bytes are charged already; returns what is still owed,
 * to be charged without the lock: what makes room looks at pools. */
uint64_t pool_take_growth(struct vgpu *v, struct record *pool, uint64_t reserved, uint64_t booked);

#endif
