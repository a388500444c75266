/* The protocol. Let W be the card's word `used`, L a lane, OP its word `op`, BAL its balance on the card.
 *
 * An operation of lane L on a card, by delta bytes (negative: give back):
 *  1. Read W. Choose the next sequence number whose low bits (the mark) differ from those in W, if W was written by L.
 *  2. Store L.after = BAL + delta.
 *  3. Store OP = (number, card, PENDING).                                    the intent is on record
 *  4. Read W; over the limit: store OP = (number, IDLE), refuse.
 *  5. Settle W's last writer: if the lane that W names is PENDING on this card with W's mark, and W still stands as
 *     read, compare-and-swap that lane's OP to APPLIED.
 *  6. Compare-and-swap W to (bytes + delta, slot, lane, mark). On failure go to 4.     <- takes effect here, and only
 * here
 *  7. Store BAL = L.after.
 *  8. Store OP = (number, IDLE).
 *
 * A process killed anywhere leaves OP saying what it was at. PENDING, and W names this lane and mark: step 6 happened.
 * APPLIED: it happened and W was overwritten since (step 5 comes before every overwriting). PENDING and W names
 * another: it did not happen, and never will. If it did, BAL = L.after, which may be stored twice.
 *
 * Why step 5 cannot be wrong: sequence numbers never repeat in a lane, so OP unchanged from its reading to its
 * swap means one and the same operation was under way all the time. When that operation began, W did not bear its
 * mark (step 1), only lane L writes tags of lane L, and W was seen to bear the mark in between: step 6 happened.
 * That W may change and change back unnoticed (ABA) is harmless: only its value matters to step 6.
 *
 * Clearing a dead slot (one speaker at a time, by the reap lock):
 *  a. Settle each lane as above: BAL = L.after where it took effect, OP = (number, IDLE).
 *  b. For each card whose balances have a sum: one operation of lane 0 by -sum. It is one swap, so the counter is never
 *     below what the living hold, nor above; the balances that stay behind cancel out.
 *  A speaker killed in between leaves what any killed process leaves: the next one starts at a. */
#include "region/ledger.h"

#include <sched.h>

#include "core/macros.h"
#include "region/shared.h"

enum { MAX_TRIES = 1000000 }; /* a sane neighbour lets us in after a few; more is sabotage */
enum { MAX_PEAK_TRIES = 1000, MAX_LANE_WAITS = 100000 };

enum { OP_CARD_SHIFT = OP_STATE_BITS, OP_NUMBER_SHIFT = OP_CARD_SHIFT + OP_CARD_BITS };
enum { MARK_MASK = (1 << USED_MARK_BITS) - 1 };

struct op {
	uint64_t number;
	unsigned state, card;
};

static struct op op_unpack(uint64_t w)
{
	return (struct op) {
		.number = w >> OP_NUMBER_SHIFT,
		.state = w & ((1U << OP_STATE_BITS) - 1),
		.card = (w >> OP_CARD_SHIFT) & ((1U << OP_CARD_BITS) - 1),
	};
}

static uint64_t op_pack(struct op op)
{
	return op.number << OP_NUMBER_SHIFT | (uint64_t)op.card << OP_CARD_SHIFT | op.state;
}

/* Slot, lane and mark, as they stand above the bytes. */
static uint64_t tag_of(unsigned slot, unsigned lane, uint64_t number)
{
	return (uint64_t)slot << (USED_LANE_BITS + USED_MARK_BITS) | (uint64_t)lane << USED_MARK_BITS |
	       (number & MARK_MASK);
}

static uint64_t used_tag(uint64_t word)
{
	return word >> USED_BYTES_BITS;
}

/* Step 5. False: W is no longer what was read. */
static bool settle_writer(struct region_layout *r, unsigned card, uint64_t word, uint64_t own_tag)
{
	uint64_t tag = used_tag(word);
	struct region_lane *lane;
	uint64_t seen;
	struct op op;

	if (tag >> USED_MARK_BITS == own_tag >> USED_MARK_BITS)
		return true;
	lane = &r->lanes[tag >> (USED_LANE_BITS + USED_MARK_BITS)][(tag >> USED_MARK_BITS) & (REGION_LANES - 1)];
	seen = shared_load(&lane->op);
	op = op_unpack(seen);
	if (op.state != OP_PENDING || op.card != card || (op.number & MARK_MASK) != (tag & MARK_MASK))
		return true;
	if (shared_load(&r->counters[card].used) != word)
		return false;
	op.state = OP_APPLIED;
	shared_cas(&lane->op, &seen, op_pack(op)); /* fails if its owner has finished, or another marked it */
	return true;
}

static void note_peak(struct region_counter *c, uint64_t bytes)
{
	uint64_t peak = shared_load(&c->peak_bytes);

	for (unsigned tries = 0; tries < MAX_PEAK_TRIES && bytes > peak; tries++) {
		if (shared_cas(&c->peak_bytes, &peak, bytes))
			return;
	}
}

struct change {
	unsigned slot, lane, card;
	uint64_t delta;               /* modulo 2^64 */
	uint64_t limit;               /* of the sum, when delta is positive */
	const _Atomic uint64_t *held; /* by the process that asks; NULL: not known */
	bool below;                   /* out: the counter held less than was given back */
};

static bool fits(const struct change *c, uint64_t bytes)
{
	if ((int64_t)c->delta <= 0)
		return true;
	return c->delta <= c->limit && bytes <= c->limit - c->delta;
}

/* `held` grows after the counter and shrinks before it: while the counter stands still, it is no less. */
static bool is_forged(const struct change *c, const _Atomic uint64_t *word, uint64_t seen)
{
	return c->held != NULL && used_bytes(seen) < shared_load(c->held) && shared_load(word) == seen;
}

/* Steps 4 to 6. LEDGER_OK: taken effect. */
static enum ledger_result take_effect(struct region_layout *r, struct change *c, uint64_t number)
{
	_Atomic uint64_t *word = &r->counters[c->card].used;
	uint64_t tag = tag_of(c->slot, c->lane, number);

	for (unsigned tries = 0; tries < MAX_TRIES; tries++) {
		uint64_t seen = shared_load(word);
		uint64_t bytes = used_bytes(seen);

		if (HM_UNLIKELY(is_forged(c, word, seen)))
			return LEDGER_LOST;
		if (!fits(c, bytes))
			return LEDGER_FULL;
		if (!settle_writer(r, c->card, seen, tag))
			continue;
		c->below = (int64_t)c->delta < 0 && bytes < 0 - c->delta;
		bytes = c->below ? 0 : bytes + c->delta;
		if (!shared_cas(word, &seen, tag << USED_BYTES_BITS | bytes))
			continue;
		if ((int64_t)c->delta > 0)
			note_peak(&r->counters[c->card], bytes);
		return LEDGER_OK;
	}
	return LEDGER_LOST;
}

/* Steps 7 and 8. */
static void book(struct region_lane *lane, struct op op)
{
	shared_store(&lane->balance[op.card], shared_load(&lane->after));
	op.state = OP_IDLE;
	shared_store(&lane->op, op_pack(op));
}

static enum ledger_result operate(struct region_layout *r, struct change *c)
{
	struct region_lane *lane = &r->lanes[c->slot][c->lane];
	struct op op = op_unpack(shared_load(&lane->op));
	uint64_t word = shared_load(&r->counters[c->card].used);
	enum ledger_result result;

	op = (struct op) { .number = op.number + 1, .card = c->card, .state = OP_PENDING };
	if (used_tag(word) == tag_of(c->slot, c->lane, op.number))
		op.number++;
	shared_store(&lane->after, shared_load(&lane->balance[c->card]) + c->delta);
	shared_store(&lane->op, op_pack(op));
	result = take_effect(r, c, op.number);
	if (result == LEDGER_OK) {
		book(lane, op);
		return c->below ? LEDGER_LOST : LEDGER_OK;
	}
	op.state = OP_IDLE;
	shared_store(&lane->op, op_pack(op));
	return result;
}

/* A free lane, or REGION_LANES after a long wait (all of them held by threads that never come back). Threads begin
 * their search at lanes of their own: their stacks are far apart. */
static unsigned take_lane(struct ledger *l)
{
	unsigned first = (unsigned)((uintptr_t)__builtin_frame_address(0) >> 16);

	for (unsigned waits = 0; waits < MAX_LANE_WAITS; waits++) {
		unsigned lane = (first + waits) % REGION_LANES;

		if (atomic_load_explicit(&l->lane_busy[lane], memory_order_relaxed) == 0 &&
		    atomic_exchange_explicit(&l->lane_busy[lane], 1, memory_order_acquire) == 0)
			return lane;
		if (waits % REGION_LANES == REGION_LANES - 1)
			sched_yield();
	}
	return REGION_LANES;
}

static enum ledger_result change_by(struct ledger *l, struct change c)
{
	const struct region_head *head = &l->region->heads[l->slot];
	enum ledger_result result;

	if (shared_load(&head->who) != l->who || shared_load(&head->meta) != l->meta)
		return LEDGER_LOST;
	c.slot = l->slot;
	c.lane = take_lane(l);
	if (c.lane == REGION_LANES)
		return LEDGER_LOST;
	result = operate(l->region, &c);
	atomic_store_explicit(&l->lane_busy[c.lane], 0, memory_order_release);
	return result;
}

enum ledger_result ledger_reserve(struct ledger *l, unsigned card, uint64_t limit, uint64_t bytes)
{
	enum ledger_result result = LEDGER_FULL;

	if (limit > REGION_MAX_BYTES)
		limit = REGION_MAX_BYTES;
	if (bytes == 0)
		return LEDGER_OK;
	if (bytes <= limit)
		result = change_by(
			l, (struct change) { .card = card, .delta = bytes, .limit = limit, .held = &l->held[card] });
	if (result == LEDGER_OK)
		atomic_fetch_add_explicit(&l->held[card], bytes, memory_order_release);
	return result;
}

enum ledger_result ledger_release(struct ledger *l, unsigned card, uint64_t bytes)
{
	if (bytes == 0)
		return LEDGER_OK;
	if (bytes > atomic_load_explicit(&l->held[card], memory_order_relaxed))
		return LEDGER_LOST;
	atomic_fetch_sub_explicit(&l->held[card], bytes, memory_order_relaxed);
	return change_by(l, (struct change) { .card = card, .delta = 0 - bytes });
}

uint64_t ledger_used(const struct region_layout *r, unsigned card)
{
	return used_bytes(shared_load(&r->counters[card].used));
}

static bool took_effect(struct op op, unsigned slot, unsigned number, uint64_t used_word)
{
	return op.state == OP_APPLIED ||
	       (op.state == OP_PENDING && used_tag(used_word) == tag_of(slot, number, op.number));
}

uint64_t lane_balance(const struct region_lane *lane, unsigned slot, unsigned number, unsigned card, uint64_t used_word)
{
	struct op op = op_unpack(shared_load(&lane->op));

	if (op.card == card && took_effect(op, slot, number, used_word))
		return shared_load(&lane->after);
	return shared_load(&lane->balance[card]);
}

uint64_t ledger_slot_used(const struct region_layout *r, unsigned slot, unsigned card)
{
	uint64_t sum = 0, word = shared_load(&r->counters[card].used);

	for (unsigned i = 0; i < REGION_LANES; i++)
		sum += lane_balance(&r->lanes[slot][i], slot, i, card, word);
	return sum;
}

/* Step a. W is read before OP is read again: if the operation's word was overwritten before, OP says so by now. */
static void settle_lane(struct region_layout *r, unsigned slot, unsigned number)
{
	struct region_lane *lane = &r->lanes[slot][number];
	struct op op = op_unpack(shared_load(&lane->op));
	uint64_t word;

	if (op.state == OP_IDLE)
		return;
	word = shared_load(&r->counters[op.card].used);
	op = op_unpack(shared_load(&lane->op));
	if (took_effect(op, slot, number, word)) {
		book(lane, op);
		return;
	}
	op.state = OP_IDLE;
	shared_store(&lane->op, op_pack(op));
}

static void zero_balances(struct region_layout *r, unsigned slot, unsigned card)
{
	for (unsigned i = 0; i < REGION_LANES; i++) {
		if (shared_load(&r->lanes[slot][i].balance[card]) != 0)
			shared_store(&r->lanes[slot][i].balance[card], 0);
	}
}

bool ledger_clear_slot(struct region_layout *r, unsigned slot)
{
	bool sane = true;

	for (unsigned i = 0; i < REGION_LANES; i++)
		settle_lane(r, slot, i);
	for (unsigned card = 0; card < HM_MAX_CARDS; card++) {
		uint64_t sum = ledger_slot_used(r, slot, card);
		struct change c = { .slot = slot, .card = card, .delta = 0 - sum };

		if (sum == 0 || (sum <= REGION_MAX_BYTES && operate(r, &c) == LEDGER_OK))
			continue;
		sane = false; /* scribbled upon: what is left cannot be told from noise */
		zero_balances(r, slot, card);
	}
	return sane;
}
