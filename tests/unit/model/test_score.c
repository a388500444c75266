/* Points as HAMi 2.10's plugin gave them for made-up NVMLs, and the rules' edges. */
#include "model/score.h"

#include "harness/unit.h"
#include "make_inventory.h"

/* What is known of the pair 0, 1. */
static struct card_score score_of(enum link_kind path, unsigned there, unsigned back, unsigned switched)
{
	hm_auto(inventory) *inv = make_inventory(2, 1024);
	struct card_score one;

	inv->links[1] = (struct card_link) { path, 0, path, (uint8_t)there, (uint8_t)switched };
	inv->links[2] = (struct card_link) { path, 0, path, (uint8_t)back, (uint8_t)switched };
	one = score_pair(inv, 0, 1);
	assert_int_equal(one.points, score_pair(inv, 1, 0).points);
	assert_int_equal(one.asymmetric, score_pair(inv, 1, 0).asymmetric);
	assert_int_equal(score_pair(inv, 1, 1).points, 0);
	return one;
}

static void a_pair(void **state)
{
	static const struct {
		const char *what;
		enum link_kind path;
		unsigned there, back, switched, points;
		bool asymmetric;
	} cases[] = {
		{ "4 direct, across NUMA nodes", LINK_SYSTEM, 4, 4, 0, 410, false },
		{ "switch, 18 and 12, one NUMA node", LINK_NODE, 0, 0, 12, 1220, false },
		{ "only one card knows of them", LINK_NODE, 2, 0, 0, 0, true },
		{ "only the other knows of them", LINK_NODE, 0, 2, 0, 0, true },
		{ "one board", LINK_BOARD, 0, 0, 0, 60, false },
		{ "one switch", LINK_SINGLE_SWITCH, 0, 0, 0, 50, false },
		{ "several switches", LINK_MULTI_SWITCH, 0, 0, 0, 40, false },
		{ "host bridge", LINK_HOSTBRIDGE, 0, 0, 0, 30, false },
		{ "NUMA node", LINK_NODE, 0, 0, 0, 20, false },
		{ "system", LINK_SYSTEM, 0, 0, 0, 10, false },
		{ "a VM that tells nothing", LINK_NONE, 0, 0, 0, 0, false },
		{ "the most", LINK_NODE, 18, 18, 0, 1820, false },
		{ "more than HAMi knows", LINK_NODE, 19, 19, 0, 20, false },
		{ "they differ: the fewer", LINK_SYSTEM, 4, 3, 0, 310, false },
		{ "direct beside switches", LINK_SYSTEM, 2, 2, 6, 210, false },
		{ "direct, and the other sees the switch", LINK_SYSTEM, 2, 0, 6, 210, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_score s = score_of(cases[i].path, cases[i].there, cases[i].back, cases[i].switched);

		if (s.points != cases[i].points || s.asymmetric != cases[i].asymmetric)
			fail_msg("%s: %u points, asymmetric %d", cases[i].what, s.points, s.asymmetric);
	}
}

/* A DGX A100: what HAMi wrote to node a100x8. */
static void a_whole_node(void **state)
{
	static const unsigned expected[4][8] = {
		{ 0, 1240, 1220, 1220, 1210, 1210, 1210, 1210 },
		{ 1240, 0, 1220, 1220, 1210, 1210, 1210, 1210 },
		{ 1220, 1220, 0, 1240, 1210, 1210, 1210, 1210 },
		{ 1220, 1220, 1240, 0, 1210, 1210, 1210, 1210 },
	};
	hm_auto(inventory) *inv = make_inventory(8, 81920);

	(void)state;
	for (size_t a = 0; a < 8; a++)
		for (size_t b = 0; b < 8; b++)
			inv->links[a * 8 + b] = (struct card_link) { .path = a / 2 == b / 2   ? LINK_MULTI_SWITCH
									     : a / 4 == b / 4 ? LINK_NODE
											      : LINK_SYSTEM,
								     .switched = 12 };
	for (size_t a = 0; a < 4; a++)
		for (size_t b = 0; b < 8; b++)
			assert_int_equal(score_pair(inv, a, b).points, expected[a][b]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_pair), cmocka_unit_test(a_whole_node) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
