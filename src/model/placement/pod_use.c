#include "model/placement/pod_use.h"

#include <stdlib.h>

#include "model/placement/pod_sum.h"

static enum ask_kind kind_of(const enum ask_kind *kinds, size_t count, uint32_t container)
{
	return container < count ? kinds[container] : ASK_APP;
}

struct card_use pod_use_over_life(const struct card_share *shares, size_t count, const enum ask_kind *kinds,
				  size_t kind_count, const uint32_t *card)
{
	struct pod_sum sum = { 0 };

	for (size_t i = 0, next; i < count; i = next) {
		enum ask_kind kind = kind_of(kinds, kind_count, shares[i].container);
		struct card_use own = { 0 };

		for (next = i; next < count && shares[next].container == shares[i].container; next++)
			if (card == NULL || shares[next].card == *card)
				own = card_use_sum(own, card_share_use(&shares[next]));
		pod_sum_add(&sum, kind == ASK_INIT, own);
	}
	return pod_sum_total(&sum);
}

static int by_card(const void *a, const void *b)
{
	const struct card_hold *x = a, *y = b;

	return (x->card > y->card) - (x->card < y->card);
}

size_t pod_use_by_card(const struct card_share *shares, size_t count, const enum ask_kind *kinds, size_t kind_count,
		       struct card_hold *out)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct card_hold hold = { .card = shares[i].card };
		bool seen = false;

		for (size_t k = 0; k < i && !seen; k++)
			seen = shares[k].card == hold.card;
		if (seen)
			continue;
		hold.use = pod_use_over_life(shares, count, kinds, kind_count, &hold.card);
		if (hold.use.slots > 0)
			out[n++] = hold;
	}
	if (n > 1) /* of none, `out` may be NULL */
		qsort(out, n, sizeof out[0], by_card);
	return n;
}
