/* CUDA_VISIBLE_DEVICES on top of what the runtime lets in (sim_visible.h). */
#ifndef HM_SIM_CUDA_VISIBLE_H
#define HM_SIM_CUDA_VISIBLE_H

#include "sim/lib/sim_state.h"

/* The node's card numbers in the order CUDA numbers them; returns how many. */
unsigned cu_visible_devices(unsigned out[SIM_MAX_CARDS]);

#endif
