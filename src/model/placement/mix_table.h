/* A mix of pods as seen by one kind of card (type and memory), made ready to measure how fragmented a node's free
 * cards are. All in thousandths of a card ("milli"); whole numbers only, so that equal nodes measure equal. */
#ifndef HM_MODEL_PLACEMENT_MIX_TABLE_H
#define HM_MODEL_PLACEMENT_MIX_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_mix.h"

enum {
	CARD_MILLI = 1000,                       /* an empty card, and what only an empty card can serve */
	MIX_WEIGHT_BITS = 16,                    /* the weights of all shapes make 2^16 together, but for rounding */
	MEASURE_MILLI = 1000 << MIX_WEIGHT_BITS, /* a milli of a card, at weight 1000 */
};

/* What is free on a node. */
struct node_room {
	const uint16_t *cards;       /* free milli of each card, 0 to CARD_MILLI */
	size_t count;                /* up to NODE_MAX_CARDS */
	int64_t cpu_milli, host_mib; /* negative: not known, and then no reason to refuse */
};

/* How much each part counts, in thousandths. docs/placement.md says what they are for and how they were found. */
struct fgd_weights {
	int32_t fragment; /* F: the FGD paper's measure */
	int32_t copies;   /* C: what is left when a pod type took as many places as the node has */
	int32_t balance;  /* B: free cards times free cores of CPU, a milli of a card for each pair of card and core */
	int32_t empty;    /* E: empty cards, a milli of a card for each */
	/* Differences are rounded to so many milli of a card, and what is equal then goes by name; 0: they are not. The
	 * second where the node's CPU is not known: what looks better then is often not. */
	int32_t step, blind_step;
};

struct mix_table;

/* `type` and `card_mib` of the cards. An empty mix counts as one pod that wants a whole card. NULL where memory is
 * short. */
struct mix_table *mix_table_new(const struct pod_mix *mix, const char *type, int32_t card_mib);
void mix_table_free(struct mix_table *t);
HM_DEFINE_AUTO(mix_table, mix_table_free);

/* Fragmentation of the room, the parts weighted, in MEASURE_MILLI. */
int64_t mix_table_measure(const struct mix_table *t, const struct node_room *room, const struct fgd_weights *w);

/* What the ask needs of such a card, 1 to CARD_MILLI; more where it can never be. */
uint16_t card_ask_milli(const struct card_ask *ask, int32_t card_mib);

#endif
