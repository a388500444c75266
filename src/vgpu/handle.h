/* Who keeps the memory of a handle (cuMemCreate): references, and mappings, binds and whatever else is counted beside
 * them. Its charge is returned with the last of both. The driver may use a handle's value again as soon as the memory
 * is gone, before the hook that freed it is done: so who keeps memory names the record, not the value. */
#ifndef HM_VGPU_HANDLE_H
#define HM_VGPU_HANDLE_H

#include "abi/cuda.h"
#include "vgpu/state.h"

/* The handle's record, kept until handle_drop; NULL: not one of ours, no charge. */
struct record *handle_keep(struct vgpu *v, CUmemGenericAllocationHandle handle);
void handle_drop(struct vgpu *v, struct record *r); /* NULL is nothing */
/* The same for what is mapped at ptr. */
struct record *handle_keep_mapped(struct vgpu *v, CUdeviceptr ptr);

/* A record whose `owner` keeps a handle's memory (a mapping, a bind, a tile) and that has been taken out ends, and with
 * it what it kept. NULL is nothing. */
void handle_keeper_ended(struct vgpu *v, struct record *keeper);
/* All of a kind that name `of` in `bytes`: an object's binds, an array's tiles. */
void handle_keepers_ended(struct vgpu *v, enum track_kind kind, const struct record *of);

#endif
