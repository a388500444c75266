/* CUDA_VISIBLE_DEVICES on top of what the runtime lets in (sim_visible.h). */
#ifndef HM_SIM_CUDA_VISIBLE_H
#define HM_SIM_CUDA_VISIBLE_H

#include "sim/lib/sim_state.h"

/* The node's card numbers in the order CUDA numbers them; returns how many. */
unsigned cu_visible_devices(unsigned out[SIM_MAX_CARDS]);

/* The one MIG device that this process gets: the first in CUDA_VISIBLE_DEVICES where that begins with one, else the
 * first visible one where no card without MIG is visible. Cards with MIG are taken out of `cards`: CUDA has no use for
 * them as a whole. True: it is *card's compute instance *live, and the process sees no other device. */
bool cu_visible_mig(unsigned cards[SIM_MAX_CARDS], unsigned *count, unsigned *card, uint32_t *live);

#endif
