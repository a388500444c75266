/* Green contexts, and who owns what is made while one is current. */
#ifndef HM_VGPU_GREEN_H
#define HM_VGPU_GREEN_H

#include <stdint.h>

#include "vgpu/state.h"

/* The context with whose end goes what the calling thread allocates now: the current one, or the primary context of the
 * device where a green one is current. 0: there is none. */
uint64_t green_current_owner(struct vgpu *v);

#endif
