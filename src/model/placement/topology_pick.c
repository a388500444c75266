#include "model/placement/topology_pick.h"

#include <stdbool.h>
#include <string.h>

#include "core/macros.h"

enum {
	MAX_GROUPS = 64, /* cards that are looked at; the first ones found */
	MAX_WAYS = 20000,
};

/* The found shares by cards: those of one card are alike. */
struct groups {
	const struct node_state *n;
	struct {
		uint32_t card;
		uint32_t has, takes, best;
	} of[MAX_GROUPS];
	size_t count;
	int64_t best_sum;
	bool any;
};

static int64_t pair(const struct groups *g, size_t a, size_t b)
{
	return node_state_pair_score(g->n, g->of[a].card, g->of[b].card);
}

static void make_groups(struct groups *g, const struct node_state *n, const struct card_share *found, size_t count)
{
	g->n = n;
	g->count = 0;
	g->any = false;
	for (size_t i = 0; i < count; i++) {
		if (g->count > 0 && g->of[g->count - 1].card == found[i].card) {
			g->of[g->count - 1].has++;
		} else if (g->count < MAX_GROUPS) {
			g->of[g->count].card = found[i].card;
			g->of[g->count].has = 1;
			g->of[g->count].takes = g->of[g->count].best = 0;
			g->count++;
		}
	}
}

static bool groups_have(const struct groups *g, size_t want)
{
	size_t has = 0;

	for (size_t i = 0; i < g->count; i++)
		has += g->of[i].has;
	return has >= want;
}

/* What `takes` of group `at` add to the sum with the groups before it; shares of one card have no score. */
static int64_t adds(const struct groups *g, size_t at, uint32_t takes)
{
	int64_t sum = 0;

	for (size_t i = 0; i < at; i++)
		sum += (int64_t)g->of[i].takes * takes * pair(g, i, at);
	return sum;
}

static void keep_best(struct groups *g, int64_t sum)
{
	if (g->any && sum <= g->best_sum)
		return;
	g->any = true;
	g->best_sum = sum;
	for (size_t i = 0; i < g->count; i++)
		g->of[i].best = g->of[i].takes;
}

/* Every way to take `want` of the groups from `at` on, the first found first. Depth: MAX_GROUPS. */
static void try_all(struct groups *g, size_t at, size_t want, int64_t sum)
{
	size_t behind = 0;

	if (want == 0) {
		for (size_t i = at; i < g->count; i++)
			g->of[i].takes = 0;
		keep_best(g, sum);
		return;
	}
	for (size_t i = at; i < g->count; i++)
		behind += g->of[i].has;
	if (behind < want)
		return;
	for (uint32_t takes = (uint32_t)HM_MIN(want, (size_t)g->of[at].has) + 1; takes-- > 0;) {
		g->of[at].takes = takes;
		try_all(g, at + 1, want - takes, sum + adds(g, at, takes));
	}
}

/* Are there few enough ways to try all? They are taken off *left. */
static bool few_ways(const struct groups *g, size_t want, uint64_t *left)
{
	enum { MOST = 64 };
	uint64_t ways[MOST + 1] = { 1 };

	if (want > MOST || *left == 0)
		return false;
	for (size_t i = 0; i < g->count; i++)
		for (size_t k = want; k > 0; k--)
			for (size_t t = 1; t <= HM_MIN(k, (size_t)g->of[i].has); t++) {
				ways[k] += ways[k - t];
				if (ways[k] > MAX_WAYS)
					ways[k] = MAX_WAYS + 1;
			}
	if (ways[want] > MAX_WAYS)
		return false;
	*left -= HM_MIN(ways[want], *left);
	return *left > 0;
}

/* What one more of group `at` adds to those taken. */
static int64_t gain(const struct groups *g, size_t at)
{
	int64_t sum = 0;

	for (size_t i = 0; i < g->count; i++)
		if (i != at)
			sum += (int64_t)g->of[i].takes * pair(g, HM_MIN(i, at), HM_MAX(i, at));
	return sum;
}

static void start_with_best_pair(struct groups *g)
{
	size_t a = 0, b = 0;
	int64_t most = INT64_MIN;

	for (size_t i = 0; i < g->count; i++)
		for (size_t k = i + 1; k < g->count; k++)
			if (pair(g, i, k) > most) {
				most = pair(g, i, k);
				a = i;
				b = k;
			}
	if (a == b)
		return;
	g->of[a].takes = 1;
	g->of[b].takes = 1;
}

static void pick_one_by_one(struct groups *g, size_t want)
{
	size_t taken = 0;
	int64_t sum = 0;

	start_with_best_pair(g);
	for (size_t i = 0; i < g->count; i++)
		taken += g->of[i].takes;
	for (; taken < want; taken++) {
		size_t best = g->count;

		for (size_t i = 0; i < g->count; i++)
			if (g->of[i].takes < g->of[i].has && (best == g->count || gain(g, i) > gain(g, best)))
				best = i;
		if (best == g->count)
			break;
		g->of[best].takes++;
	}
	for (size_t i = 0; i < g->count; i++)
		sum += adds(g, i, g->of[i].takes);
	keep_best(g, sum);
}

/* The card that is joined least to the others goes; the others stay for who wants several. */
static int64_t pick_single(const struct node_state *n, struct card_share *found, size_t count)
{
	struct card_share picked;
	size_t best = 0;
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		int64_t sum = 0;

		for (size_t k = 0; k < count; k++)
			if (found[k].card != found[i].card)
				sum += node_state_pair_score(n, found[i].card, found[k].card);
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	picked = found[best];
	memmove(&found[1], &found[0], best * sizeof found[0]);
	found[0] = picked;
	return -least;
}

/* Brings what was picked to the front. */
static void move_picked(const struct groups *g, struct card_share *found, size_t count)
{
	size_t group = 0, taken = 0, to = 0;

	for (size_t i = 0; i < count && group < g->count; i++) {
		if (found[i].card != g->of[group].card) {
			group++;
			taken = 0;
		}
		if (group < g->count && taken < g->of[group].best) {
			found[to++] = found[i];
			taken++;
		}
	}
}

int64_t topology_pick(const struct node_state *n, struct card_share *found, size_t count, size_t want, uint64_t *ways)
{
	struct groups g;

	if (want == 0)
		return 0;
	if (want == 1 && count > 1)
		return pick_single(n, found, count);
	make_groups(&g, n, found, count);
	if (!groups_have(&g, want))
		return 0;
	if (few_ways(&g, want, ways))
		try_all(&g, 0, want, 0);
	if (!g.any)
		pick_one_by_one(&g, want);
	move_picked(&g, found, count);
	return g.best_sum;
}
