/* Would a node refuse the pod even if nobody else had anything of it? Then no eviction helps. */
#ifndef HM_MODEL_PLACEMENT_FIT_NEVER_H
#define HM_MODEL_PLACEMENT_FIT_NEVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"
#include "model/placement/fit_wishes.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

/* MiB of the card. A whole card, or most of one, is more than any MIG instance of it has: there it is the largest. */
static inline int32_t fit_memory_on(const struct node_state *n, size_t card, const struct card_ask *ask)
{
	const struct node_card *c = &n->cards[card];
	int32_t memory = card_ask_memory(ask, c->memory_mib);

	return ask->memory_mib == 0 ? HM_MIN(memory, node_card_most_memory(n, c)) : memory;
}

/* True is certain, in whatever order containers come to their cards. False: some container may be all that is in the
 * way, or how those that run together would share the cards is not clear without trying. `refused`: the container that
 * found no cards. No quota is looked at. */
bool fit_never(const struct node_state *n, struct wishes *wishes, const struct pod_ask *ask, size_t refused);

#endif
