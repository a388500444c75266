/* The best joined cards, against trying every set by hand. */
#include "model/placement/topology_pick.h"

#include <stdlib.h>

#include "make_node.h"

enum { CARDS = 8, MANY = 1000000 };

static struct node_state *scored_node(struct texts *texts, unsigned seed, unsigned cards)
{
	struct node_state *n = node_state_new("n", texts);

	for (unsigned i = 0; i < cards; i++)
		add_card(n, make_card(i));
	srand(seed);
	for (unsigned a = 0; a < cards; a++)
		for (unsigned b = a + 1; b < cards; b++)
			join(n, n->cards[a].uuid, n->cards[b].uuid, 10 * (rand() % 8));
	return n;
}

/* The first of the sets of `want` places in found[] with the largest sum, as bits. */
static unsigned by_hand(const struct node_state *n, const struct card_share *found, unsigned count, unsigned want,
			int64_t *sum)
{
	unsigned best = 0;

	*sum = -1;
	/* Sets in the order that lists them by their first members: the complement, read from the top. */
	for (unsigned order = (1U << count); order-- > 0;) {
		unsigned set = 0;
		int64_t s = 0;

		for (unsigned i = 0; i < count; i++)
			if (order & (1U << (count - 1 - i)))
				set |= 1U << i;
		if ((unsigned)__builtin_popcount(set) != want)
			continue;
		for (unsigned a = 0; a < count; a++)
			for (unsigned b = a + 1; b < count; b++)
				if ((set >> a & 1) && (set >> b & 1) && found[a].card != found[b].card)
					s += node_state_pair_score(n, found[a].card, found[b].card);
		if (s > *sum) {
			*sum = s;
			best = set;
		}
	}
	return best;
}

static void check_against_hand(const struct node_state *n, const struct card_share *found, unsigned count)
{
	for (unsigned want = 2; want <= count; want++) {
		struct card_share picked[CARDS];
		int64_t sum, expected;
		uint64_t ways = MANY;
		unsigned set = by_hand(n, found, count, want, &expected);
		size_t k = 0;

		memcpy(picked, found, count * sizeof found[0]);
		sum = topology_pick(n, picked, count, want, &ways);
		assert_int_equal(sum, expected);
		for (unsigned i = 0; i < count; i++)
			if (set >> i & 1)
				assert_int_equal(picked[k++].card, found[i].card);
	}
}

static void several(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 20; seed++) {
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = scored_node(texts, seed, CARDS);
		struct card_share found[CARDS] = { { 0 } };

		for (uint32_t i = 0; i < CARDS; i++)
			found[i].card = CARDS - 1 - i;
		check_against_hand(n, found, CARDS);
	}
}

/* Instances of MIG cards stand several times for their card. */
static void instances(void **state)
{
	static const uint32_t of[CARDS] = { 3, 3, 3, 1, 0, 0, 2, 2 };

	(void)state;
	for (unsigned seed = 1; seed <= 20; seed++) {
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = scored_node(texts, seed, 4);
		struct card_share found[CARDS] = { { 0 } };

		for (uint32_t i = 0; i < CARDS; i++)
			found[i].card = of[i];
		check_against_hand(n, found, CARDS);
	}
}

static void a_single_one(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	struct card_share found[4] = { { .card = 3 }, { .card = 2 }, { .card = 1 }, { .card = 0 } };
	uint64_t ways = 0; /* none are needed */

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add_card(n, make_card(i));
	/* 0-1 and 0-2 are joined, 3 to nobody. */
	join(n, "GPU-0", "GPU-1", 100);
	join(n, "GPU-0", "GPU-2", 100);
	topology_pick(n, &found[1], 3, 1, &ways);
	assert_int_equal(found[1].card, 2); /* of 2, 1, 0: the first that only one of the others is joined to */
	topology_pick(n, found, 4, 1, &ways);
	assert_int_equal(found[0].card, 3);
}

/* 40 cards, 20 wanted: more ways than can be tried. Two groups that are joined well within. */
static void too_many_ways(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	struct card_share found[40] = { { 0 } };
	uint64_t ways = MANY;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		add_card(n, make_card(i));
		found[i].card = i;
	}
	for (unsigned a = 0; a < 40; a++)
		for (unsigned b = 0; b < 40; b++)
			if (a % 2 == b % 2 && a != b)
				assert_int_equal(node_state_set_pair_score(n, a, b, a % 2 == 1 ? 60 : 50, NULL), 0);
	assert_int_equal(topology_pick(n, found, 40, 20, &ways), 190 * 60);
	assert_int_equal(ways, MANY); /* not one of them was tried */
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(found[i].card, 2 * i + 1);
}

/* Two cards that are joined best, each alone among the others, and three that are joined well: the best set of three is
 * not found by beginning with the best pair. */
static void ways_run_short(void **state)
{
	static const struct {
		uint64_t before, after;
		int64_t sum;
	} rows[] = {
		{ MANY, MANY - 10, 270 }, /* 10 sets of 3 of 5 */
		{ 11, 1, 270 },
		{ 10, 0, 100 }, /* not enough are left for that and one more */
		{ 0, 0, 100 },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		add_card(n, make_card(i));
	join(n, "GPU-0", "GPU-1", 100);
	join(n, "GPU-2", "GPU-3", 90);
	join(n, "GPU-3", "GPU-4", 90);
	join(n, "GPU-2", "GPU-4", 90);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct card_share found[5] = {
			{ .card = 0 }, { .card = 1 }, { .card = 2 }, { .card = 3 }, { .card = 4 }
		};
		uint64_t ways = rows[i].before;

		assert_int_equal(topology_pick(n, found, 5, 3, &ways), rows[i].sum);
		assert_int_equal(ways, rows[i].after);
		assert_int_equal(found[0].card, rows[i].sum == 270 ? 2 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several),       cmocka_unit_test(instances),      cmocka_unit_test(a_single_one),
		cmocka_unit_test(too_many_ways), cmocka_unit_test(ways_run_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
