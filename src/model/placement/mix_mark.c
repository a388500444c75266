#include "model/placement/mix_mark.h"

enum {
	NEW_PART = 8,
	SHIFT_PART = 16, /* less is chance: 4,096 pods of fifty shapes differ as much from the 4,096 before them */
};

void mix_mark_set(struct mix_mark *mark, const struct pod_mix *m)
{
	for (size_t i = 0; i < m->count; i++) {
		mark->entries[i].number = m->entries[i].number;
		mark->entries[i].weight = m->entries[i].weight;
	}
	mark->count = m->count;
	mark->total = m->total;
	mark->seen = m->seen;
}

/* What one shape has lost another has won: the difference of the shares is counted twice. */
static bool has_shifted(const struct mix_mark *mark, const struct pod_mix *m)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < m->count; i++) {
		uint64_t now = m->entries[i].weight * mark->total;
		uint64_t then = i < mark->count ? mark->entries[i].weight * m->total : 0;

		if (i < mark->count && mark->entries[i].number == m->entries[i].number)
			differ += now > then ? now - then : then - now;
		else
			differ += now + then;
	}
	return differ * SHIFT_PART >= 2 * m->total * mark->total;
}

bool mix_mark_is_old(struct mix_mark *mark, const struct pod_mix *m)
{
	if (m->seen == mark->seen)
		return m->total != mark->total;
	if (m->seen == mark->looked_seen || (m->seen - mark->seen) * NEW_PART < mark->total)
		return false;
	mark->looked_seen = m->seen;
	return m->total > mark->total || has_shifted(mark, m);
}
