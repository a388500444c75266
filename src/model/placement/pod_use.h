/* What a pod has of each card, over its life: containers that run together add up, those that run one after another
 * take turns (KEP-753): the larger of all sidecars and app containers together, and of each init container with the
 * sidecars before it. For grants and for what annotations say alike. */
#ifndef HM_MODEL_PLACEMENT_POD_USE_H
#define HM_MODEL_PLACEMENT_POD_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

enum { NO_PROFILE = -1 };

/* One card, or one MIG instance of it, for one container. */
struct card_share {
	uint32_t container; /* by the order of the pod's asks */
	uint32_t card;      /* index in the node, or any number that tells cards apart */
	int32_t memory_mib;
	int32_t cores;
	int32_t profile;         /* of the node's profiles; NO_PROFILE: no MIG, or not looked up */
	struct mig_placement at; /* size 0: no MIG instance */
};

static inline struct card_use card_share_use(const struct card_share *s)
{
	return (struct card_use) { 1, s->memory_mib, s->cores };
}

/* Of all cards, or of one where `card` is not NULL. shares in the order of containers; kinds[i] is container i's, what
 * is beyond kind_count counts as an app container. */
struct card_use pod_use_over_life(const struct card_share *shares, size_t count, const enum ask_kind *kinds,
				  size_t kind_count, const uint32_t *card);

struct card_hold {
	uint32_t card;
	struct card_use use;
};

/* The same for each card. out has room for `count`, comes in order of cards. Returns how many. */
size_t pod_use_by_card(const struct card_share *shares, size_t count, const enum ask_kind *kinds, size_t kind_count,
		       struct card_hold *out);

#endif
