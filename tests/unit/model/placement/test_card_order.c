/* Each policy's order, read from the end as cards are tried. */
#include "model/placement/card_order.h"

#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

/* Card 2 and 3 are equal in all; NUMA nodes 0, 0, 1, 1, 1. */
static const struct card_rank cards[] = {
	{ .card = 0, .index = 0, .numa = 0, .slots = 3, .fullness = 7 },
	{ .card = 1, .index = 1, .numa = 0, .slots = 1, .fullness = 9 },
	{ .card = 2, .index = 2, .numa = 1, .slots = 1, .fullness = 2 },
	{ .card = 3, .index = 3, .numa = 1, .slots = 1, .fullness = 2 },
	{ .card = 4, .index = 4, .numa = 1, .slots = 2, .fullness = 7 },
};

static const struct {
	const char *policy;
	bool numa_bind;
	const char *tried;
	bool mutex, topology;
} cases[] = {
	{ "binpack", false, "14032", false, false },
	{ "spread", false, "32401", false, false },
	{ "topology-aware", false, "32401", false, true },
	{ "Binpack", false, "32401", false, false },
	{ "", false, "32401", false, false },
	{ "mutex", false, "32140", true, false },
	{ "mutex", true, "32140", true, false },
	{ "binpack", true, "10432", false, false },
	{ "spread", true, "32401", false, false },
	{ "weird", true, "32401", false, false },
	{ "numa", false, "43210", false, false },
	{ "numa,binpack", false, "43210", false, false },
	{ "numa,spread", false, "32401", false, false },
	{ " binpack , numa ", false, "14032", false, false },
	{ "binpack,spread", true, "43210", false, false },
	{ "spread,numa", false, "32401", false, false },
	{ "mutex,binpack", false, "14032", true, false },
	{ "topology-aware,mutex", false, "32401", true, true },
	{ "x,y", false, "32401", false, false },
};

static void policies(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_order o = card_order_read(cases[i].policy, cases[i].numa_bind);
		struct card_rank sorted[HM_COUNT(cards)];
		char tried[HM_COUNT(cards) + 1] = "";

		memcpy(sorted, cards, sizeof cards);
		card_order_sort(&o, sorted, HM_COUNT(cards));
		for (size_t k = 0; k < HM_COUNT(cards); k++)
			tried[k] = (char)('0' + sorted[HM_COUNT(cards) - 1 - k].card);
		if (strcmp(tried, cases[i].tried) != 0 || o.mutex != cases[i].mutex || o.topology != cases[i].topology)
			fail_msg("%s%s: %s, not %s; mutex %d, topology %d", cases[i].policy,
				 cases[i].numa_bind ? " with numa-bind" : "", tried, cases[i].tried, o.mutex,
				 o.topology);
	}
}

static void a_rank_stands_above_the_keys(void **state)
{
	struct card_order o = card_order_read("binpack", false);
	struct card_rank sorted[HM_COUNT(cards)];

	(void)state;
	memcpy(sorted, cards, sizeof cards);
	for (size_t i = 0; i < HM_COUNT(cards); i++)
		sorted[i].rank = i == 2 ? -1 : i == 0 ? 5 : 0;
	card_order_sort(&o, sorted, HM_COUNT(cards));
	assert_int_equal(sorted[4].card, 2);
	assert_int_equal(sorted[3].card, 1);
	assert_int_equal(sorted[0].card, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies),
		cmocka_unit_test(a_rank_stands_above_the_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
