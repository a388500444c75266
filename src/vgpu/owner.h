/* Who owns what the driver makes. */
#ifndef HM_VGPU_OWNER_H
#define HM_VGPU_OWNER_H

#include <stdint.h>

#include "vgpu/state.h"

/* The context with whose end goes what the calling thread allocates now: the current one, or the primary context of the
 * device where a green one is current. 0: there is none. */
uint64_t owner_current(struct vgpu *v);

#endif
