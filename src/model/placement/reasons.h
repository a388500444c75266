/* Why a node, or a card of it, is refused: HAMi's words and counts, which users and tools match on. */
#ifndef HM_MODEL_PLACEMENT_REASONS_H
#define HM_MODEL_PLACEMENT_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define REASON_TOO_FEW_CARDS "NodeInsufficientDevice"
#define REASON_UNREGISTERED "node unregistered"

enum card_reason {
	REASON_NOT_HEALTHY,
	REASON_CORDONED,
	REASON_TYPE,
	REASON_NUMA,
	REASON_UUID,
	REASON_SLOTS,
	REASON_EXCLUSIVE,
	REASON_QUOTA,
	REASON_MEMORY,
	REASON_CORES,
	REASON_CORES_EXHAUSTED,
	REASON_MIG_PLACE,
	REASON_CARDS_TOO_FEW, /* cards that would do, where more are asked */
	REASON_COUNT
};

const char *card_reason_word(enum card_reason r); /* "CardInsufficientMemory" */

struct refusal {
	bool too_few_cards; /* the node has not so many cards: nothing was counted */
	bool unresolvable;  /* whoever leaves the node, it stays refused: preemption is of no use */
	uint32_t cards;     /* candidates that were looked at */
	uint32_t counts[REASON_COUNT];
};

/* "1/4 AllocatedCardsInsufficientRequest, 3/4 ResourceQuotaNotFit" */
void refusal_write(const struct refusal *r, struct str *out);

#endif
