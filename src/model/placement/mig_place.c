#include "model/placement/mig_place.h"

static bool same_place(struct mig_placement a, struct mig_placement b)
{
	return a.start == b.start && a.size == b.size;
}

static bool goes_with(const struct card_share *earlier, size_t count, size_t card, struct mig_placement at)
{
	for (size_t i = 0; i < count; i++)
		if (earlier[i].card == card && earlier[i].at.size > 0 && !same_place(earlier[i].at, at) &&
		    mig_overlaps(earlier[i].at, at))
			return false;
	return true;
}

bool mig_place(const struct node_state *n, size_t card, int32_t memory_mib, uint64_t busy,
	       const struct card_share *earlier, size_t count, int32_t *profile, struct mig_placement *at)
{
	const struct node_card *c = &n->cards[card];

	for (uint32_t p = c->first_profile; p < c->first_profile + c->profile_count; p++) {
		const struct card_profile *candidate = &n->profiles[p];

		if (candidate->memory_mib < memory_mib)
			continue;
		for (uint32_t i = 0; i < candidate->place_count; i++) {
			struct mig_placement place = n->places[candidate->first_place + i];

			if ((mig_place_bits(place) & busy) != 0 || !goes_with(earlier, count, card, place))
				continue;
			*profile = (int32_t)p;
			*at = place;
			return true;
		}
	}
	return false;
}

size_t mig_most(const struct node_state *n, size_t card, int32_t memory_mib)
{
	uint64_t busy = 0;
	int32_t profile;
	struct mig_placement at;
	size_t most = 0;

	while (mig_place(n, card, memory_mib, busy, NULL, 0, &profile, &at)) {
		busy |= mig_place_bits(at);
		most++;
	}
	return most;
}
