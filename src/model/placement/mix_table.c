/* Shapes with the same cards and milli form a group: what the node's cards have for it is counted once. Within it,
 * rows differ by CPU and memory of the node. */
#include "model/placement/mix_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "model/placement/words.h"

enum {
	RECIPROCAL_BITS = 20,
	NEVER = CARD_MILLI + 1,
};

struct row {
	uint32_t cards;
	uint16_t milli;
	int64_t cpu_milli, host_mib;
	int64_t weight;
};

struct group {
	uint32_t cards;
	uint16_t milli;
	uint32_t reciprocal; /* of milli: free * reciprocal >> RECIPROCAL_BITS is free / milli, for free <= 1000 */
	size_t first, count;
	size_t next; /* group of more cards; the milli grow up to there */
};

struct mix_table {
	size_t group_count, row_count;
	int64_t weight;   /* of all rows */
	struct row *rows; /* sorted by group */
	struct group groups[];
};

uint16_t card_ask_milli(const struct card_ask *ask, int32_t card_mib)
{
	int64_t memory = card_ask_memory(ask, card_mib), milli;

	if (ask->cores >= 100)
		return memory > card_mib ? NEVER : CARD_MILLI;
	if (card_mib <= 0)
		return NEVER;
	milli = (memory * CARD_MILLI + card_mib - 1) / card_mib;
	milli = HM_MAX(milli, (int64_t)ask->cores * (CARD_MILLI / 100));
	milli = HM_MAX(milli, 1);
	return (uint16_t)HM_MIN(milli, NEVER);
}

static bool takes_type(const struct mix_shape *s, const char *type)
{
	if (s->use_types != NULL && s->use_types[0] != '\0' && !words_any_in(s->use_types, type))
		return false;
	return s->no_types == NULL || !words_any_in(s->no_types, type);
}

static struct row make_row(const struct mix_entry *m, const char *type, int32_t card_mib, uint64_t total)
{
	const struct mix_shape *s = &m->shape;
	struct row r = { .cards = s->cards,
			 .milli = NEVER,
			 .cpu_milli = s->cpu_milli,
			 .host_mib = s->host_mib,
			 .weight = (int64_t)(((m->weight << MIX_WEIGHT_BITS) + total / 2) / total) };

	if (takes_type(s, type))
		r.milli = card_ask_milli(&s->each, card_mib);
	if (r.milli == NEVER) { /* all that is free is lost to it, whatever else it wants */
		r.cards = 1;
		r.cpu_milli = 0;
		r.host_mib = 0;
	}
	return r;
}

static int by_group(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->cards != y->cards)
		return x->cards < y->cards ? -1 : 1;
	if (x->milli != y->milli)
		return x->milli < y->milli ? -1 : 1;
	if (x->cpu_milli != y->cpu_milli)
		return x->cpu_milli < y->cpu_milli ? -1 : 1;
	return (x->host_mib > y->host_mib) - (x->host_mib < y->host_mib);
}

/* Sorted; equal rows become one. */
static size_t merge_rows(struct row *rows, size_t count)
{
	size_t n = 0;

	qsort(rows, count, sizeof *rows, by_group);
	for (size_t i = 0; i < count; i++) {
		if (n > 0 && by_group(&rows[n - 1], &rows[i]) == 0)
			rows[n - 1].weight += rows[i].weight;
		else
			rows[n++] = rows[i];
	}
	return n;
}

static void make_groups(struct mix_table *t)
{
	for (size_t i = 0; i < t->row_count; i++) {
		const struct row *r = &t->rows[i];
		struct group *g = t->group_count == 0 ? NULL : &t->groups[t->group_count - 1];

		if (g == NULL || g->cards != r->cards || g->milli != r->milli) {
			g = &t->groups[t->group_count++];
			*g = (struct group) { .cards = r->cards, .milli = r->milli, .first = i };
			g->reciprocal = ((1u << RECIPROCAL_BITS) + r->milli - 1) / r->milli;
		}
		g->count++;
		t->weight += r->weight;
	}
	for (size_t i = t->group_count; i-- > 0;) {
		bool last = i + 1 == t->group_count || t->groups[i + 1].cards != t->groups[i].cards;

		t->groups[i].next = last ? i + 1 : t->groups[i + 1].next;
	}
}

struct mix_table *mix_table_new(const struct pod_mix *mix, const char *type, int32_t card_mib)
{
	const struct mix_entry whole = { .shape = { .cards = 1, .each = { .count = 1, .percent = 100 } }, .weight = 1 };
	const struct mix_entry *from = mix->total == 0 ? &whole : mix->entries;
	size_t count = mix->total == 0 ? 1 : mix->count;
	hm_auto(mix_table) *t = calloc(1, sizeof *t + count * sizeof t->groups[0]);

	if (t == NULL)
		return NULL;
	t->rows = calloc(count, sizeof *t->rows);
	if (t->rows == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (from[i].weight > 0)
			t->rows[t->row_count++] = make_row(&from[i], type, card_mib, mix->total == 0 ? 1 : mix->total);
	t->row_count = merge_rows(t->rows, t->row_count);
	make_groups(t);
	return HM_STEAL(t);
}

void mix_table_free(struct mix_table *t)
{
	if (t == NULL)
		return;
	free(t->rows);
	free(t);
}

/* Cards with the same free milli. */
struct pile {
	uint16_t milli, times;
};

/* The first piles, those with enough for somebody. */
struct able {
	size_t count;
	uint32_t cards, milli; /* in them; what is free there */
};

/* The freest first; full cards are left out. By insertion: a node's cards are few, and mostly in few states. */
static struct able pile_up(const struct node_room *room, struct pile piles[NODE_MAX_CARDS])
{
	struct able all = { 0 };

	for (size_t i = 0; i < room->count; i++) {
		uint16_t milli = room->cards[i];
		size_t at = all.count;

		if (milli == 0)
			continue;
		all.cards++;
		all.milli += milli;
		while (at > 0 && piles[at - 1].milli < milli)
			at--;
		if (at > 0 && piles[at - 1].milli == milli) {
			piles[at - 1].times++;
			continue;
		}
		memmove(&piles[at + 1], &piles[at], (all.count++ - at) * sizeof piles[0]);
		piles[at] = (struct pile) { milli, 1 };
	}
	return all;
}

static void keep_able(struct able *a, const struct pile *piles, uint16_t milli)
{
	for (; a->count > 0 && piles[a->count - 1].milli < milli; a->count--) {
		const struct pile *last = &piles[a->count - 1];

		a->cards -= last->times;
		a->milli -= (uint32_t)last->milli * last->times;
	}
}

/* Pods of the group that these cards hold. */
static int64_t card_copies(const struct group *g, const struct pile *piles, size_t count)
{
	uint32_t shares = 0;

	for (size_t i = 0; i < count; i++)
		shares += ((piles[i].milli * g->reciprocal) >> RECIPROCAL_BITS) * piles[i].times;
	return g->cards == 1 ? shares : shares / g->cards;
}

/* How many of `most` an amount of the host serves; less than none is not known. 32 bits are divided in half the time of
 * 64. */
static int64_t host_copies(int64_t each, int64_t all, int64_t most)
{
	if (all < 0 || each <= 0 || most * each <= all)
		return most;
	return all <= UINT32_MAX && each <= UINT32_MAX ? (uint32_t)all / (uint32_t)each : all / each;
}

/* What serves the rows of a group is not lost. */
struct served {
	int64_t fragment, copies;
};

static struct served serve_rows(const struct mix_table *t, const struct group *g, const struct node_room *room,
				const struct pile *piles, const struct able *able)
{
	struct served sum = { 0 };
	int64_t most = card_copies(g, piles, able->count);

	for (const struct row *r = &t->rows[g->first], *end = r + g->count; r < end; r++) {
		int64_t copies;

		if (room->cpu_milli >= 0 && r->cpu_milli > room->cpu_milli)
			break; /* those behind it want as much */
		if (room->host_mib >= 0 && r->host_mib > room->host_mib)
			continue;
		copies = host_copies(r->cpu_milli, room->cpu_milli, most);
		copies = host_copies(r->host_mib, room->host_mib, copies);
		sum.fragment += r->weight * able->milli;
		sum.copies += r->weight * copies * g->cards * g->milli;
	}
	return sum;
}

int64_t mix_table_measure(const struct mix_table *t, const struct node_room *room, const struct fgd_weights *w)
{
	struct pile piles[NODE_MAX_CARDS];
	const struct able all = pile_up(room, piles);
	struct able able = all;
	const int64_t total = all.milli, empty = all.count > 0 && piles[0].milli == CARD_MILLI ? piles[0].times : 0;
	int64_t fragment = t->weight * total, copies = fragment, balance;
	uint32_t cards = 0;

	for (size_t i = 0; i < t->group_count;) {
		const struct group *g = &t->groups[i];
		struct served served;

		if (g->cards != cards) {
			cards = g->cards;
			able = all;
		}
		keep_able(&able, piles, g->milli);
		if (able.cards < cards) { /* nor for those that want more of each */
			i = g->next;
			continue;
		}
		served = serve_rows(t, g, room, piles, &able);
		fragment -= served.fragment;
		copies -= served.copies;
		i++;
	}
	/* A card times a core is a million of milli times milli. */
	balance = HM_MAX(room->cpu_milli, 0) * total / CARD_MILLI * (1 << MIX_WEIGHT_BITS) / CARD_MILLI;
	return w->fragment * fragment + w->copies * copies + w->balance * balance +
	       w->empty * empty * (1 << MIX_WEIGHT_BITS);
}
