/* What is mapped into arrays without memory of their own. */
#ifndef HM_VGPU_ARRAY_MAP_H
#define HM_VGPU_ARRAY_MAP_H

#include "vgpu/state.h"

/* The array of this record is gone, and what was mapped into it with it. */
void array_tiles_ended(struct vgpu *v, const struct record *array);

#endif
