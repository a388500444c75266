/* A node's cards and what is taken of each: what fit_pod looks at. Whoever knows the holders (cluster.h) adds and takes
 * away; nothing here knows a pod. Amounts are those of the register annotation, scaled as it has them. */
#ifndef HM_MODEL_PLACEMENT_NODE_STATE_H
#define HM_MODEL_PLACEMENT_NODE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/texts.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "core/macros.h"
#include "model/mig.h"

enum {
	NODE_MAX_CARDS = 1024,
	NODE_MIG_SLICES = 64, /* of a card at most; those known have eight */
	NODE_NO_CARD = -1,
};

/* CPU and memory of a node: what it has, what is left, or what a pod has of it (HOST_MOST at most, so that many add
 * up).
 */
struct host_amount {
	int64_t cpu_milli, mib;
};
#define HOST_MOST ((int64_t)1 << 40)

/* What one holder, or all together, have of a card. */
struct card_use {
	int64_t slots;
	int64_t memory_mib;
	int64_t cores;
};

static inline struct card_use card_use_sum(struct card_use a, struct card_use b)
{
	return (struct card_use) { a.slots + b.slots, a.memory_mib + b.memory_mib, a.cores + b.cores };
}

/* The larger of each amount. */
static inline struct card_use card_use_larger(struct card_use a, struct card_use b)
{
	return (struct card_use) { HM_MAX(a.slots, b.slots), HM_MAX(a.memory_mib, b.memory_mib),
				   HM_MAX(a.cores, b.cores) };
}

struct card_profile {
	char name[MIG_NAME_BYTES];
	int32_t memory_mib;
	int32_t cores;  /* percent of the card */
	int32_t slices; /* compute slices */
	/* places[first_place .. first_place + place_count) of the node, in the order they are tried */
	uint32_t first_place, place_count;
};

struct node_card {
	int32_t count; /* how many may share it */
	int32_t memory_mib;
	int32_t cores; /* 100 unless scaled; 0: not counted */
	int32_t numa;
	uint32_t index; /* NVML's */
	bool healthy;
	bool cordoned;
	bool nvidia;             /* the type has the vendor's word; others are no candidates */
	bool mig;                /* mode "mig" */
	uint32_t blocked;        /* holders of which is not known what they hold: as not healthy (node_state_block) */
	const char *type, *mode; /* of nodes with the same texts equal ones are the same pointer */
	uint32_t first_profile, profile_count;
	uint64_t busy; /* memory slices of MIG instances, a bit each */
	char uuid[HM_UUID_BYTES];
};

/* Sums over a node's cards. */
struct node_totals {
	struct card_use all, used;
};

struct node_state {
	char *name; /* owned, as is the rest */
	struct node_card *cards;
	struct card_use *used; /* of each card */
	size_t count, cap;
	struct card_profile *profiles; /* of a card: by memory and slices, the smallest first */
	size_t profile_count, profile_cap;
	struct mig_placement *places;
	size_t place_count, place_cap;
	uint16_t (*slice_holders)[NODE_MIG_SLICES]; /* of each card; NULL: no MIG instance was ever taken */
	int32_t *pair_scores;                       /* [a * count + b]; NULL: none known */
	struct node_totals totals;
	/* Of its cards and all that is taken of them, without the host below: nodes and times where it is the same are
	 * the same to a pod. */
	uint64_t print;
	/* Free CPU and memory of the node; -1: not known. The caller's to set: all that the node has, until the cluster
	 * knows its pods (cluster.h). */
	int64_t cpu_milli, host_mib;
	bool late_binding;   /* its agent needs no node lock; the caller's to set */
	struct texts *texts; /* borrowed */
};

/* NULL where memory is short. `texts` outlives the node, and has the types of those cards that are there. */
struct node_state *node_state_new(const char *name, struct texts *texts);
void node_state_free(struct node_state *n);
HM_DEFINE_AUTO(node_state, node_state_free);

/* A card as registered: count, memory, cores, numa, index, healthy, type, mode and uuid of *card; what is taken of it
 * is nothing. Register text's order. -HM_EINVAL (a uuid twice, a negative amount), -HM_ELIMIT, -HM_ENOMEM. */
int node_state_add_card(struct node_state *n, const struct node_card *card, struct hm_err *e) HM_MUST_USE;

/* A MIG profile of the card added last: name, memory, cores and slices of *profile. Places beyond NODE_MIG_SLICES are
 * left out. -HM_ENOMEM. */
int node_state_add_profile(struct node_state *n, const struct card_profile *profile, const struct mig_placement *places,
			   size_t count, struct hm_err *e) HM_MUST_USE;

/* From a to b, after all cards are there. -HM_ENOMEM. */
int node_state_set_pair_score(struct node_state *n, size_t a, size_t b, int32_t score, struct hm_err *e) HM_MUST_USE;
int32_t node_state_pair_score(const struct node_state *n, size_t a, size_t b);

/* Exactly the cards named in hami.io/device-cordon are cordoned; NULL: none. */
void node_state_cordon(struct node_state *n, const char *text);

/* MiB that a pod can get of a card of n: all, or its largest MIG instance. */
static inline int32_t node_card_most_memory(const struct node_state *n, const struct node_card *c)
{
	if (!c->mig || c->profile_count == 0)
		return c->memory_mib;
	return HM_MIN(c->memory_mib, n->profiles[c->first_profile + c->profile_count - 1].memory_mib);
}

/* Index of the card, NODE_NO_CARD where absent. */
int node_state_find(const struct node_state *n, const char *uuid);
/* The cards (struct node_card) by UUID, for long lists of them: good until a card is added. NULL where memory is short.
 */
struct map *node_state_by_uuid(const struct node_state *n);

/* A holder comes or goes; what goes has come before. */
void node_state_take(struct node_state *n, size_t card, const struct card_use *use);
void node_state_give(struct node_state *n, size_t card, const struct card_use *use);

/* One more, or one less, who has nobody knows what of the card. */
void node_state_block(struct node_state *n, size_t card, bool take);

/* The same for its MIG instances; several may share slices (those of a pod's containers that run one after another).
 * Places beyond NODE_MIG_SLICES are passed over. occupy: -HM_ENOMEM. */
int node_state_occupy(struct node_state *n, size_t card, struct mig_placement at, struct hm_err *e) HM_MUST_USE;
void node_state_vacate(struct node_state *n, size_t card, struct mig_placement at);

/* The slices as bits; 0 where the place is empty or beyond NODE_MIG_SLICES. */
uint64_t mig_place_bits(struct mig_placement at);

#endif
