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

/* A multicast object has gone: so has what was bound to it. */
void multicast_ended(struct vgpu *v, struct record *r);

#endif
