/* How full a card would be with the container on it: HAMi's sum of its three shares. HAMi means to count the request
 * but never does, for it looks for another type's name; here it counts. */
#ifndef HM_MODEL_PLACEMENT_CARD_SCORE_H
#define HM_MODEL_PLACEMENT_CARD_SCORE_H

#include <stdint.h>

#include "core/err.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

struct card_weights {
	uint32_t slot, core, memory;
};

/* hami.io/device-scoring-weights: "slot=1,core=1,memory=3"; NULL: each 1. -HM_EINVAL with HAMi's words. */
int card_weights_read(const char *text, struct card_weights *out, struct hm_err *e) HM_MUST_USE;

/* Weight times share of slots, cores and memory, times ten; 0 for a card that lacks one of them. */
float card_fullness(const struct node_card *card, const struct card_use *used, const struct card_ask *ask,
		    const struct card_weights *w);

#endif
