/* The body of struct slots, for slots.c and prefer.c only. */
#ifndef HM_MODEL_SLOTS_INTERNAL_H
#define HM_MODEL_SLOTS_INTERNAL_H

#include "model/slots.h"

struct slots {
	const struct inventory *inv; /* borrowed */
	struct slot_card cards[HM_MAX_CARDS];
	size_t at[HM_MAX_CARDS];     /* a card's place in the inventory */
	size_t uuid_n[HM_MAX_CARDS]; /* length of its UUID: 16,000 ids are looked up in one call */
	size_t count;
	enum slicing slicing;
};

/* True where card and slot exist. */
bool slots_has(const struct slots *s, struct slot_ref r);

#endif
