/* The end of contexts. */
#ifndef HM_VGPU_CONTEXT_H
#define HM_VGPU_CONTEXT_H

#include "vgpu/state.h"

/* Returns what primary contexts held that have ended: their last use may have been one of the driver's own. */
void contexts_primary_ended(struct vgpu *v);

#endif
