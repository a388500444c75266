/* The bytes in use on each card of a container: one word a card, changed only by compare-and-swap, exact over kill -9
 * at any instruction. Takes no lock, never sleeps, touches nothing but the region; every loop is bounded. */
#ifndef HM_REGION_LEDGER_H
#define HM_REGION_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "contract/region_layout.h"

/* One process's door to the ledger. Any number of its threads may use it at once. */
struct ledger {
	struct region_layout *region;
	unsigned slot;      /* claimed by slot_claim */
	uint64_t who, meta; /* what the slot's head says while it is ours */
	_Atomic uint8_t lane_busy[REGION_LANES];
	/* What this process is charged at least, kept where no other can write it: a counter below that is forged. */
	_Atomic uint64_t held[HM_MAX_CARDS];
};

enum ledger_result {
	LEDGER_OK,
	LEDGER_FULL, /* over the limit: nothing was charged */
	LEDGER_LOST, /* the slot is no longer ours, or the region's contents make no sense (the counter is below what
			this process alone holds): nothing was charged */
};

/* Charges bytes on a card (below HM_MAX_CARDS) if the container's sum stays within limit. */
enum ledger_result ledger_reserve(struct ledger *l, unsigned card, uint64_t limit, uint64_t bytes);
/* Returns what this process charged before. LEDGER_LOST: more than that, or the counter was scribbled upon, and is 0
 * now. */
enum ledger_result ledger_release(struct ledger *l, unsigned card, uint64_t bytes);

/* The container's sum on a card. */
uint64_t ledger_used(const struct region_layout *r, unsigned card);
/* What a slot is charged on a card: operations under way are counted if they took effect. */
uint64_t ledger_slot_used(const struct region_layout *r, unsigned slot, unsigned card);

/* For whoever alone speaks for a slot (its new owner, or the holder of the reap lock once its owner is dead): settles
 * what was under way, then returns the slot's whole charge. May be cut short and called again. False: the contents make
 * no sense; the slot's charge could not be returned. */
bool ledger_clear_slot(struct region_layout *r, unsigned slot);

/* The parts of the `used` word and of `op`, for viewers that read the file. */
static inline uint64_t used_bytes(uint64_t word)
{
	return word & REGION_MAX_BYTES;
}

/* The balance that counts: `after` where the operation under way took effect but is not yet booked. */
uint64_t lane_balance(const struct region_lane *lane, unsigned slot, unsigned number, unsigned card,
		      uint64_t used_word);

#endif
