/* Arrays and mipmapped arrays. */
#ifndef HM_VGPU_ARRAY_H
#define HM_VGPU_ARRAY_H

#include "vgpu/state.h"

/* Returns an array's charge, or what is mapped into it; the record is freed. */
void array_uncharge(struct vgpu *v, struct record *r);

#endif
