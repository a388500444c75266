#include "sim/cuda/granules.h"

#include <stdlib.h>

enum { WORD_BITS = 64 };

static bool bit(const uint64_t *bits, size_t at)
{
	return bits[at / WORD_BITS] >> (at % WORD_BITS) & 1;
}

static void set_range(uint64_t *bits, size_t at, size_t n, bool on)
{
	while (n > 0) {
		size_t shift = at % WORD_BITS, here = HM_MIN((size_t)WORD_BITS - shift, n);
		uint64_t mask = (here == WORD_BITS ? ~0ULL : (1ULL << here) - 1) << shift;

		if (on)
			bits[at / WORD_BITS] |= mask;
		else
			bits[at / WORD_BITS] &= ~mask;
		at += here;
		n -= here;
	}
}

/* The first position at or behind `at` whose bit is `value`; `count` where there is none. */
static size_t next(const uint64_t *bits, size_t at, size_t count, bool value)
{
	while (at < count) {
		uint64_t word = (value ? bits[at / WORD_BITS] : ~bits[at / WORD_BITS]) >> (at % WORD_BITS);

		if (word != 0)
			return HM_MIN(at + (size_t)__builtin_ctzll(word), count);
		at = (at / WORD_BITS + 1) * WORD_BITS;
	}
	return count;
}

bool granules_init(struct granules *g, size_t count)
{
	size_t words = (count + WORD_BITS - 1) / WORD_BITS;

	*g = (struct granules) { .count = count, .largest = count };
	g->taken = calloc(2 * words, sizeof *g->taken);
	g->starts = g->taken != NULL ? g->taken + words : NULL;
	return g->taken != NULL;
}

void granules_fini(struct granules *g)
{
	free(g->taken);
	g->taken = g->starts = NULL;
}

size_t granules_take(struct granules *g, size_t n)
{
	size_t at, end, longest = 0;

	if (n > g->largest)
		return SIZE_MAX;
	g->hint = next(g->taken, g->hint, g->count, false);
	for (at = g->hint; at < g->count; at = next(g->taken, end, g->count, false)) {
		end = next(g->taken, at, HM_MIN(g->count, at + n), true);
		if (end - at == n) {
			set_range(g->taken, at, n, true);
			set_range(g->starts, at, 1, true);
			g->used += n;
			return at;
		}
		longest = HM_MAX(longest, end - at);
	}
	g->largest = longest;
	return SIZE_MAX;
}

static size_t length(const struct granules *g, size_t start)
{
	size_t freed = next(g->taken, start, g->count, false), follower = next(g->starts, start + 1, freed, true);

	return HM_MIN(freed, follower) - start;
}

size_t granules_find(const struct granules *g, size_t at, size_t *n)
{
	if (at >= g->count || !bit(g->taken, at))
		return SIZE_MAX;
	size_t word = at / WORD_BITS;
	uint64_t seen = g->starts[word] & (~0ULL >> (WORD_BITS - 1 - at % WORD_BITS));

	while (seen == 0)
		seen = g->starts[--word]; /* ends: a taken granule has a start at or before it */
	size_t start = word * WORD_BITS + (WORD_BITS - 1 - (size_t)__builtin_clzll(seen));

	*n = length(g, start);
	return start;
}

void granules_give(struct granules *g, size_t at)
{
	size_t n = length(g, at);

	set_range(g->taken, at, n, false);
	set_range(g->starts, at, 1, false);
	g->used -= n;
	g->hint = HM_MIN(g->hint, at);
	g->largest = g->count; /* unknown: it may have joined its neighbours */
}
