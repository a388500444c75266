/* Which MIG instance of a card serves an amount of memory, and where on the card it stands. */
#ifndef HM_MODEL_PLACEMENT_MIG_PLACE_H
#define HM_MODEL_PLACEMENT_MIG_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_use.h"

/* The smallest profile that has the memory and a free place, at the first of its places, HAMi's order in both. `busy`:
 * slices taken (mig_place_bits). earlier[0..count): shares of the same pod's containers that will have ended; a place
 * may be one of theirs on this card, or apart from them, since whoever makes the instances makes them once. */
bool mig_place(const struct node_state *n, size_t card, int32_t memory_mib, uint64_t busy,
	       const struct card_share *earlier, size_t count, int32_t *profile, struct mig_placement *at) HM_MUST_USE;

/* How many instances with so much memory the empty card can hold, at least: the smallest such profile's. 0: no profile
 * has so much. */
size_t mig_most(const struct node_state *n, size_t card, int32_t memory_mib);

#endif
