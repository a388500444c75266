#include "sched/verbs/sampled.h"

#include "core/macros.h"
#include "harness/unit.h"

/* The shares are those of Kubernetes' documentation, "Scheduler Performance Tuning": 50 % of 100 nodes, 10 % of 5,000,
 * at least 5 %; and never fewer than 100 nodes. */
static void test_what_the_default_leaves(void **state)
{
	static const struct {
		size_t candidates, nodes;
		bool cut;
	} cases[] = {
		{ 0, 0, false },      { 1, 1, false },     { 99, 99, false },     { 100, 100, false },
		{ 100, 101, true },   { 99, 101, false },  { 101, 101, false },   { 144, 300, true },
		{ 150, 300, false },  { 420, 1000, true }, { 1000, 1000, false }, { 500, 5000, true },
		{ 499, 5000, false }, { 3, 5000, false },  { 300, 6000, true },   { 1000, 20000, true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++)
		if (sampled_is_cut(cases[i].candidates, cases[i].nodes) != cases[i].cut)
			fail_msg("%zu of %zu", cases[i].candidates, cases[i].nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_the_default_leaves) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
