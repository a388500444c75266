/* GetPreferredAllocation:
 *  1. sort the offered slots by card; slots of a live claim are set aside;
 *  2. where the others cannot make up the request, take them all and as few of those set aside as needed;
 *  3. find how few cards can hold the request, and of all sets of that many cards the best one: static slicing asks
 *     first for an unbroken run (one card), then the closest, then those with the least left over;
 *  4. fill the cards of the set from the fullest on, so that at most one of them keeps a free part;
 *  5. pick the slots on each card: unbroken runs in static slicing, the lowest numbers in dynamic. */
#include "model/slots.h"

#include <string.h>

#include "model/slots_internal.h"
#include "model/topology.h"

enum mark { FREE = 1, MUST = 2, HELD = 4, TAKEN = 8 };

struct hand { /* what is offered on one card */
	unsigned slots;
	unsigned usable; /* without those held, but for must */
	unsigned must;
	unsigned share; /* to take */
	uint8_t mark[HM_MAX_SLOTS_PER_CARD];
};

struct choice {         /* of a set of cards */
	unsigned cards; /* bit set */
	bool broken;
	struct closeness close;
	unsigned usable;
};

struct table {
	const struct slots *s;
	size_t size, usable, held;
	unsigned must_cards; /* bit set */
	struct closeness pair[HM_MAX_CARDS][HM_MAX_CARDS];
	struct choice best;
	struct hand hands[HM_MAX_CARDS];
};

static int deal_available(struct table *t, const struct slots_request *req, struct hm_err *e)
{
	for (size_t i = 0; i < req->available_count; i++) {
		struct slot_ref r = req->available[i];

		if (!slots_has(t->s, r))
			return hm_err_set(e, HM_EINVAL, "slot %u of card %u is offered, but does not exist here",
					  r.number, r.card);
		t->hands[r.card].mark[r.number] = FREE;
	}
	return 0;
}

static int deal_must(struct table *t, const struct slots_request *req, struct hm_err *e)
{
	size_t count = 0;

	for (size_t i = 0; i < req->must_count; i++) {
		struct slot_ref r = req->must[i];

		if (!slots_has(t->s, r) || t->hands[r.card].mark[r.number] == 0)
			return hm_err_set(e, HM_EINVAL, "slot %u of card %u must be taken, but is not offered",
					  r.number, r.card);
		if ((t->hands[r.card].mark[r.number] & MUST) != 0)
			continue;
		t->hands[r.card].mark[r.number] |= MUST;
		t->hands[r.card].must++;
		t->must_cards |= 1u << r.card;
		count++;
	}
	if (count > t->size)
		return hm_err_set(e, HM_EINVAL, "%zu slots must be taken, but only %zu are asked for", count, t->size);
	return 0;
}

/* Sets held slots aside and counts. */
static int deal_held(struct table *t, const struct slots_request *req, struct hm_err *e)
{
	for (size_t i = 0; i < t->s->count; i++) {
		struct hand *h = &t->hands[i];

		for (unsigned n = 0; n < h->slots; n++) {
			struct slot_ref r = { (unsigned)i, n };

			if (h->mark[n] == 0)
				continue;
			if (h->mark[n] == FREE && req->held != NULL && req->held(r, req->arg)) {
				h->mark[n] = HELD;
				t->held++;
			} else {
				h->usable++;
			}
		}
		t->usable += h->usable;
	}
	if (t->usable + t->held < t->size)
		return hm_err_set(e, HM_EINVAL, "%zu slots are asked for, but only %zu are offered", t->size,
				  t->usable + t->held);
	return 0;
}

/* The best unbroken stretch of `want` usable slots that has all of the card's must slots: in the smallest run, at its
 * start; false where there is none. */
static bool find_stretch(const struct hand *h, unsigned want, unsigned *start)
{
	unsigned best_run = UINT32_MAX, must_first = UINT32_MAX, must_last = 0;

	for (unsigned n = 0; n < h->slots && h->must > 0; n++) {
		if ((h->mark[n] & MUST) == 0)
			continue;
		must_first = HM_MIN(must_first, n);
		must_last = n;
	}
	for (unsigned n = 0, end; n < h->slots; n = end + 1) {
		unsigned at = n;

		for (end = n; end < h->slots && (h->mark[end] & FREE) != 0;)
			end++;
		if (h->must > 0 && must_last + 1 > at + want)
			at = must_last + 1 - want;
		if (at > must_first || at + want > end || end - n >= best_run)
			continue;
		best_run = end - n;
		*start = at;
	}
	return best_run != UINT32_MAX;
}

static bool better(const struct choice *a, const struct choice *b)
{
	int close;

	if (b->cards == 0)
		return true;
	if (a->broken != b->broken)
		return b->broken;
	close = closeness_compare(a->close, b->close);
	if (close != 0)
		return close > 0;
	return a->usable < b->usable; /* equal: the one found first has the lower cards */
}

/* Goes through all sets of `left` more cards from `from` on. At most C(16, 8) = 12,870 sets. */
static void choose_cards(struct table *t, struct choice so_far, unsigned from, unsigned left)
{
	if (left == 0) {
		if (so_far.usable < t->size || (so_far.cards & t->must_cards) != t->must_cards)
			return;
		if (better(&so_far, &t->best))
			t->best = so_far;
		return;
	}
	for (unsigned i = from; i + left <= t->s->count; i++) {
		struct choice next = so_far;
		unsigned start = 0;

		if (t->hands[i].usable == 0)
			continue;
		for (unsigned j = 0; j < i; j++) {
			if ((so_far.cards >> j & 1) != 0)
				next.close = closeness_add(next.close, t->pair[j][i]);
		}
		next.cards |= 1u << i;
		next.usable += t->hands[i].usable;
		if (t->s->slicing == SLICING_STATIC && next.cards == 1u << i && left == 1)
			next.broken = !find_stretch(&t->hands[i], (unsigned)t->size, &start);
		choose_cards(t, next, i + 1, left - 1);
	}
}

/* How few cards can hold the request: those of must, then the emptiest. */
static unsigned fewest_cards(const struct table *t)
{
	unsigned cards = t->must_cards, count = (unsigned)__builtin_popcount(cards);
	size_t room = 0;

	for (size_t i = 0; i < t->s->count; i++)
		room += (cards >> i & 1) != 0 ? t->hands[i].usable : 0;
	while (room < t->size) {
		unsigned most = 0, at = 0;

		for (unsigned i = 0; i < t->s->count; i++) {
			if ((cards >> i & 1) == 0 && t->hands[i].usable > most) {
				most = t->hands[i].usable;
				at = i;
			}
		}
		cards |= 1u << at;
		room += most;
		count++;
	}
	return count;
}

/* How many slots each chosen card gives: must slots first, then all of the fullest card, of the next, ... */
static void share_out(struct table *t)
{
	size_t left = t->size;
	unsigned open = t->best.cards;

	for (size_t i = 0; i < t->s->count; i++) {
		t->hands[i].share = t->hands[i].must;
		left -= t->hands[i].must;
	}
	while (left > 0) {
		unsigned least = UINT32_MAX, at = 0;

		for (unsigned i = 0; i < t->s->count; i++) {
			if ((open >> i & 1) != 0 && t->hands[i].usable < least) {
				least = t->hands[i].usable;
				at = i;
			}
		}
		open &= ~(1u << at);
		least = (unsigned)HM_MIN((size_t)(least - t->hands[at].must), left);
		t->hands[at].share += least;
		left -= least;
	}
}

static void take(struct hand *h, unsigned n)
{
	if ((h->mark[n] & TAKEN) != 0 || h->share == 0)
		return;
	h->mark[n] |= TAKEN;
	h->share--;
}

static bool is_open(const struct hand *h, unsigned n)
{
	return (h->mark[n] & (FREE | TAKEN)) == FREE;
}

/* Slots next to those of must: upwards, then downwards. */
static void take_neighbours(struct hand *h)
{
	for (unsigned n = 1; n < h->slots; n++) {
		if (is_open(h, n) && (h->mark[n - 1] & TAKEN) != 0)
			take(h, n);
	}
	for (unsigned n = h->slots; n-- > 1;) {
		if (is_open(h, n - 1) && (h->mark[n] & TAKEN) != 0)
			take(h, n - 1);
	}
}

/* The open run to break into next: the smallest that holds all that is left to take, else the largest. */
static unsigned next_run(const struct hand *h, unsigned *length)
{
	unsigned best = 0, at = 0;

	for (unsigned n = 0, end; n < h->slots; n = end + 1) {
		unsigned run;

		for (end = n; end < h->slots && is_open(h, end);)
			end++;
		run = end - n;
		if (run == 0)
			continue;
		if (best == 0 || (best < h->share ? run > best : run >= h->share && run < best)) {
			best = run;
			at = n;
		}
	}
	*length = best;
	return at;
}

static void take_static(struct hand *h)
{
	unsigned start = 0, length = 0;

	if (find_stretch(h, h->share, &start)) {
		for (unsigned n = 0, end = h->share; n < end; n++)
			take(h, start + n);
		return;
	}
	for (unsigned n = 0; n < h->slots; n++) {
		if ((h->mark[n] & MUST) != 0)
			take(h, n);
	}
	take_neighbours(h);
	while (h->share > 0) {
		start = next_run(h, &length);
		for (unsigned n = start; n < start + length; n++)
			take(h, n);
	}
}

static void take_dynamic(struct hand *h)
{
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned n = 0; n < h->slots; n++) {
			if ((h->mark[n] & (pass == 0 ? MUST : FREE)) != 0)
				take(h, n);
		}
	}
}

/* All usable slots, and held ones as far as the request goes: on cards that are touched anyway first. */
static void take_with_held(struct table *t)
{
	size_t missing = t->size - t->usable;

	for (unsigned touched = 2; touched-- > 0;) {
		for (size_t i = 0; i < t->s->count; i++) {
			struct hand *h = &t->hands[i];

			for (unsigned n = 0; n < h->slots; n++) {
				if ((h->mark[n] & FREE) != 0) {
					h->mark[n] |= TAKEN;
				} else if (h->mark[n] == HELD && missing > 0 && (h->usable > 0) == (touched > 0)) {
					h->mark[n] |= TAKEN;
					missing--;
				}
			}
		}
	}
}

static void take_usable(struct table *t)
{
	for (size_t i = 0; i < t->s->count; i++) {
		for (size_t j = 0; j < i; j++)
			t->pair[j][i] = topology_pair(t->s->inv, t->s->at[j], t->s->at[i]);
	}
	choose_cards(t, (struct choice) { 0 }, 0, fewest_cards(t));
	share_out(t);
	for (size_t i = 0; i < t->s->count; i++) {
		if (t->hands[i].share == 0)
			continue;
		if (t->s->slicing == SLICING_STATIC)
			take_static(&t->hands[i]);
		else
			take_dynamic(&t->hands[i]);
	}
}

static void write_taken(const struct table *t, struct slot_ref *out)
{
	for (size_t i = 0; i < t->s->count; i++) {
		for (unsigned n = 0; n < t->hands[i].slots; n++) {
			if ((t->hands[i].mark[n] & TAKEN) != 0)
				*out++ = (struct slot_ref) { (unsigned)i, n };
		}
	}
}

int slots_prefer(const struct slots *s, const struct slots_request *req, struct slot_ref *out, struct hm_err *e)
{
	hm_auto_heap struct table *t = calloc(1, sizeof *t);
	int r;

	if (t == NULL)
		return hm_err_set(e, HM_ENOMEM, "preferred slots");
	t->s = s;
	t->size = req->size;
	for (size_t i = 0; i < s->count; i++)
		t->hands[i].slots = s->cards[i].slots;
	r = deal_available(t, req, e);
	if (r == 0)
		r = deal_must(t, req, e);
	if (r == 0)
		r = deal_held(t, req, e);
	if (r < 0)
		return r;
	if (t->usable < t->size)
		take_with_held(t);
	else if (t->size > 0)
		take_usable(t);
	write_taken(t, out);
	return 0;
}
