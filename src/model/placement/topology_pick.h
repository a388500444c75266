/* Of the cards that would do, those that are joined best: the policy topology-aware. */
#ifndef HM_MODEL_PLACEMENT_TOPOLOGY_PICK_H
#define HM_MODEL_PLACEMENT_TOPOLOGY_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "model/placement/node_state.h"
#include "model/placement/pod_use.h"

/* Moves `want` of found[0..count) to its beginning, in their order; want <= count, the shares of one card (MIG) stand
 * side by side. One: the card that the others would miss least, with the smallest sum of scores to them. Several: the
 * largest sum of scores between them. The first found among equals. Exact while there are not too many ways to look at;
 * beyond that each next card is the one that adds most. *ways: how many may be looked at yet; those that were are taken
 * off, 0 where they were not enough. Returns how well, the more the better. */
int64_t topology_pick(const struct node_state *n, struct card_share *found, size_t count, size_t want, uint64_t *ways);

#endif
