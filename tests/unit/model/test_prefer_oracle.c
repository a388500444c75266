/* slots_prefer against a brute-force oracle: every set of slots that would do, judged by the words of the contract. */
#include "model/slots.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "unit/model/make_inventory.h"

enum { MANY = 64 };

struct judged { /* smaller is better, the members in this order */
	unsigned held;
	unsigned cards;
	unsigned broken; /* one card, static */
	int far;         /* minus the NVLinks between the cards */
	int numa;        /* minus the pairs on one NUMA node */
	int path;
	unsigned left_over; /* usable slots of the touched cards that stay */
};

struct problem {
	const struct inventory *inv;
	enum slicing slicing;
	struct slot_ref available[MANY];
	size_t count;
	uint32_t must, held; /* bit sets over available */
	size_t size;
};

static unsigned cards_of(const struct problem *p, uint32_t set)
{
	unsigned cards = 0;

	for (size_t i = 0; i < p->count; i++)
		cards |= (set >> i & 1) << p->available[i].card;
	return cards;
}

static bool in_a_row(const struct problem *p, uint32_t set)
{
	unsigned first = UINT32_MAX, last = 0;

	for (size_t i = 0; i < p->count; i++) {
		if ((set >> i & 1) == 0)
			continue;
		first = first < p->available[i].number ? first : p->available[i].number;
		last = last > p->available[i].number ? last : p->available[i].number;
	}
	return last - first + 1 == (unsigned)__builtin_popcount(set);
}

static struct judged judge(const struct problem *p, uint32_t set)
{
	unsigned cards = cards_of(p, set);
	uint32_t held = p->held & ~p->must;
	struct judged j = {
		(unsigned)__builtin_popcount(set & held), (unsigned)__builtin_popcount(cards), 0, 0, 0, 0, 0
	};

	j.broken = j.cards == 1 && p->slicing == SLICING_STATIC && !in_a_row(p, set);
	for (size_t i = 0; i < p->count; i++)
		j.left_over += (~held >> i & 1) != 0 && (cards >> p->available[i].card & 1) != 0 && (set >> i & 1) == 0;
	for (size_t a = 0; a < p->inv->count; a++) {
		for (size_t b = 0; b < a; b++) {
			if ((cards >> a & 1) == 0 || (cards >> b & 1) == 0)
				continue;
			j.far -= inventory_link(p->inv, a, b).nvlinks;
			j.numa -= p->inv->cards[a].numa_node == p->inv->cards[b].numa_node;
			j.path -= (int)inventory_link(p->inv, a, b).kind;
		}
	}
	return j;
}

static int judged_compare(struct judged a, struct judged b)
{
	const int x[] = { (int)a.held, (int)a.cards, (int)a.broken, a.far, a.numa, a.path, (int)a.left_over };
	const int y[] = { (int)b.held, (int)b.cards, (int)b.broken, b.far, b.numa, b.path, (int)b.left_over };

	for (size_t i = 0; i < HM_COUNT(x); i++) {
		/* Where a held slot has to be taken all others are taken too: nothing else to judge. */
		if (i > 0 && a.held > 0)
			return 0;
		if (x[i] != y[i])
			return x[i] - y[i];
	}
	return 0;
}

static unsigned rand_below(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((*seed >> 33) % n);
}

static bool held_bit(struct slot_ref r, void *arg)
{
	const struct problem *p = arg;

	for (size_t i = 0; i < p->count; i++) {
		if (p->available[i].card == r.card && p->available[i].number == r.number)
			return (p->held >> i & 1) != 0;
	}
	return false;
}

static void make_problem(uint64_t *seed, struct inventory *inv, unsigned slots, struct problem *p)
{
	*p = (struct problem) { .inv = inv, .slicing = rand_below(seed, 2) == 0 ? SLICING_STATIC : SLICING_DYNAMIC };
	for (unsigned c = 0; c < inv->count; c++) {
		inv->cards[c].numa_node = (int)rand_below(seed, 2);
		for (unsigned d = 0; d < c; d++) {
			unsigned kind = rand_below(seed, LINK_NVLINK + 1);

			set_link(inv, c, d, kind, kind == LINK_NVLINK ? 1 + rand_below(seed, 3) : 0);
		}
		for (unsigned n = 0; n < slots; n++) {
			if (p->count < 12 && rand_below(seed, 100) < 60)
				p->available[p->count++] = (struct slot_ref) { c, n };
		}
	}
	p->size = p->count == 0 ? 0 : 1 + rand_below(seed, (unsigned)p->count);
	for (size_t i = 0; i < p->count; i++) {
		p->must |= (uint32_t)(rand_below(seed, 8) == 0) << i;
		p->held |= (uint32_t)(rand_below(seed, 10) == 0) << i;
	}
	while ((size_t)__builtin_popcount(p->must) > p->size)
		p->must &= p->must - 1;
}

static uint32_t answer_of(const struct problem *p, const struct slots *s)
{
	struct slot_ref must[MANY], out[MANY];
	struct slots_request req = { p->available, must, p->count, 0, p->size, held_bit, (void *)p };
	struct hm_err e;
	uint32_t set = 0;

	for (size_t i = 0; i < p->count; i++) {
		if ((p->must >> i & 1) != 0)
			must[req.must_count++] = p->available[i];
	}
	if (slots_prefer(s, &req, out, &e) < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < p->count; i++) {
		for (size_t j = 0; j < p->size; j++)
			set |= (uint32_t)(p->available[i].card == out[j].card &&
					  p->available[i].number == out[j].number)
			       << i;
	}
	return set;
}

static void test_oracle(void **state)
{
	uint64_t seed = 20261129;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		unsigned cards = 1 + rand_below(&seed, 5), slots = 1 + rand_below(&seed, 6);
		hm_auto(inventory) *inv = make_inventory(cards, 1000);
		hm_auto(slots) *s = NULL;
		struct slots_config config = { slots, 0, SLICING_STATIC };
		struct problem p;
		struct hm_err e;
		struct judged mine;
		uint32_t set;

		make_problem(&seed, inv, slots, &p);
		config.slicing = p.slicing;
		assert_int_equal(slots_new(inv, &config, &s, &e), 0);
		set = answer_of(&p, s);
		assert_int_equal(__builtin_popcount(set), p.size);
		assert_int_equal(set & p.must, p.must);
		mine = judge(&p, set);
		for (uint32_t other = 0; other < 1u << p.count; other++) {
			if ((size_t)__builtin_popcount(other) != p.size || (other & p.must) != p.must)
				continue;
			if (judged_compare(mine, judge(&p, other)) > 0)
				fail_msg("round %u: %x is worse than %x (size %zu, must %x, held %x)", round, set,
					 other, p.size, p.must, p.held);
		}
		assert_int_equal(answer_of(&p, s), set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_oracle) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
