#include "sched/verbs/sampled.h"

#include <stdio.h>

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

enum { NODES = 300, LATER_MS = 600000 };

/* A pod is refused by so many nodes from `first` on, as kube-scheduler goes round. */
static bool asked(struct sampled_watch *w, const char *uid, size_t first, size_t count, uint64_t now_ms)
{
	static struct refused_node refused[NODES];
	static char names[NODES][16];

	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "n%zu", (first + i) % NODES);
		refused[i] = (struct refused_node) { .name = names[i] };
	}
	return sampled_turns(w, uid, refused, count, NODES, now_ms);
}

/* percentageOfNodesToScore: 40 of 300 nodes. */
static void test_a_share_set_by_hand_goes_round(void **state)
{
	struct sampled_watch w = { 0 };

	(void)state;
	assert_false(asked(&w, "a", 0, 120, 1));
	assert_false(asked(&w, "b", 120, 120, 2));
	assert_false(asked(&w, "a", 240, 120, 3));
	assert_false(asked(&w, "b", 60, 120, 4));
	assert_true(asked(&w, "a", 180, 120, 5));
}

static void test_pods_that_may_go_to_few_nodes(void **state)
{
	struct sampled_watch w = { 0 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		assert_false(asked(&w, "the same nodes", 0, 120, i));
		assert_false(asked(&w, "others of another pod", 120, 120, i));
		assert_false(asked(&w, "fewer than it ever leaves", i, 99, i));
		assert_false(asked(&w, "all", i, NODES, i));
		assert_false(asked(&w, "never as many", i, 120 + i, i));
	}
}

static void test_a_pod_that_does_not_come_again_bars_no_other(void **state)
{
	struct sampled_watch w = { 0 };

	(void)state;
	assert_false(asked(&w, "gone", 0, 120, 1));
	for (size_t i = 0; i < 3; i++)
		assert_false(asked(&w, "a", 60 * i, 120, LATER_MS));
	for (size_t i = 0; i < 2; i++)
		assert_false(asked(&w, "a", 60 * i, 120, LATER_MS + 1));
	assert_true(asked(&w, "a", 120, 120, LATER_MS + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_default_leaves),
		cmocka_unit_test(test_a_share_set_by_hand_goes_round),
		cmocka_unit_test(test_pods_that_may_go_to_few_nodes),
		cmocka_unit_test(test_a_pod_that_does_not_come_again_bars_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
