/* From NVML's names of cards to ours. */
#ifndef HM_VGPU_VIEW_H
#define HM_VGPU_VIEW_H

#include "vgpu/state.h"

struct nvml_device;

/* The card of an NVML handle, by UUID; in NVML's order where the environment sets the limits. NULL: not ours to use. */
struct vgpu_card *view_nvml_card(struct vgpu *v, struct nvml_device *device);

#endif
