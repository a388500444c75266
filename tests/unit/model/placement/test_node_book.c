/* What holdings count for on the cards of their node, and on those that are not there. */
#include "make_hold.h"

/* The reference's example of what a pod with an init container counts for (hami-scheduler 5.7); the namespace is
 * charged as Kubernetes sums up. */
static void init_containers_count_by_their_peak(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	static const struct card_ask asks[] = { { .kind = ASK_INIT }, { .kind = ASK_APP }, { .kind = ASK_APP } };
	static const struct hold_share shares[] = {
		{ 0, "n1-0", 8000, 0, NULL, { 0 } },
		{ 1, "n1-0", 5000, 30, NULL, { 0 } },
		{ 2, "n1-0", 2000, 10, NULL, { 0 } },
		{ 2, "n1-1", 2000, 10, NULL, { 0 } },
	};

	(void)state;
	assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, shares, 4, asks, 3), 0);
	expect_used(c, "n1", "2/8000/40 1/2000/10");
	expect_held(c, 9000, 50);
	assert_int_equal(hold(c, "a", "n2", HOLD_BOUND, shares, 4, asks, 3), 0);
	assert_true(cluster_holding_waits(cluster_find(c, "a")));
}

static void only_init_then_nothing(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	static const struct hold_share shares[] = { { 0, "n2-0", 8000, 50, NULL, { 0 } } };

	(void)state;
	assert_int_equal(hold(c, "a", "n2", HOLD_BOUND, shares, 1, init_app, 2), 0);
	expect_used(c, "n2", "1/8000/50");
	expect_held(c, 8000, 50);
	cluster_release(c, "a");
}

static void holdings_wait_for_node_and_card(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	static const struct hold_share two[] = { { 0, "n1-0", 500, 10, NULL, { 0 } },
						 { 0, "n1-2", 600, 20, NULL, { 0 } } };

	(void)state;
	assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, two, 2, &app, 1), 0);
	expect_held(c, 1100, 30);
	assert_null(cluster_node(c, "n1"));
	assert_true(cluster_holding_waits(cluster_find(c, "a")));
	assert_int_equal(node_count(c), 0);
	put_node(c, &(struct made_node) { "n1", 2, 10, 40000, 100, NULL });
	expect_used(c, "n1", "1/500/10 0/0/0");
	assert_true(cluster_holding_waits(cluster_find(c, "a")));
	put_node(c, &(struct made_node) { "n1", 3, 10, 300, 100, NULL }); /* and smaller than what is held of it */
	expect_used(c, "n1", "1/500/10 0/0/0 1/600/20");
	assert_false(cluster_holding_waits(cluster_find(c, "a")));
	cluster_remove_node(c, "n1");
	cluster_remove_node(c, "n1");
	assert_null(cluster_node(c, "n1"));
	hold_one(c, "b", "n1", HOLD_BOUND, "n1-0", 1, 0);
	put_node(c, &(struct made_node) { "n1", 1, 10, 40000, 100, NULL });
	expect_used(c, "n1", "2/501/10");
	assert_int_equal(node_count(c), 1);
	cluster_release(c, "a");
	expect_used(c, "n1", "1/1/0");
	cluster_remove_node(c, "n1");
	cluster_release(c, "b");
	assert_int_equal(cluster_holding_count(c), 0);
}

/* ---- what cannot be read */

static void unreadable_counts_as_the_most_on_each_card(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	static const struct card_ask asks[] = {
		{ .kind = ASK_INIT, .count = 1, .memory_mib = 30000, .cores = 100 },
		{ .kind = ASK_APP, .count = 2, .memory_mib = 1000, .cores = 30 },
		{ .kind = ASK_APP },
		{ .kind = ASK_APP, .count = 1, .percent = 50 },
	};

	(void)state;
	hold_unreadable(c, "a", "n1", asks, 4);
	expect_held(c, 30000, 100); /* nothing is known of the percentage's card yet */
	put_node(c, &(struct made_node) { "n1", 2, 10, 80000, 100, NULL });
	expect_used(c, "n1", "2/41000/100 2/41000/100");
	expect_held(c, 42000, 100);
	put_node(c, &(struct made_node) { "n1", 1, 10, 20000, 100, "mig" });
	expect_used(c, "n1", "2/30000/100!1");
	expect_held(c, 30000, 100);
	hold_one(c, "a", "n1", HOLD_BOUND, "n1-9", 1, 0); /* it can be read now */
	expect_used(c, "n1", "0/0/0");
	hold_unreadable(c, "b", "n1", &asks[2], 1);
	expect_used(c, "n1", "0/0/0");
}

/* ---- MIG */

static void instances_occupy_their_slices(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	static const struct hold_share both[] = { { 0, "n1-0", 9856, 28, "2g.10gb", { 0, 2 } },
						  { 1, "n1-0", 9856, 28, "2g.10gb", { 2, 2 } } };
	static const struct hold_share third = { 0, "n1-0", 9856, 28, "2g.10gb", { 4, 2 } };

	(void)state;
	assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, both, 2, init_app, 2), 0);
	put_node(c, &(struct made_node) { "n1", 1, 3, 40000, 100, "mig" });
	assert_int_equal(hold(c, "b", "n1", HOLD_RESERVED, &third, 1, &app, 1), 0);
	assert_int_equal(busy(c, "n1", 0), 0x3f);
	expect_used(c, "n1", "2/19712/56");
	cluster_expire(c, 1000);
	assert_int_equal(busy(c, "n1", 0), 0x0f);
	cluster_release(c, "a");
	assert_int_equal(busy(c, "n1", 0), 0);
	expect_used(c, "n1", "0/0/0");
}

static void records_that_disagree_with_the_cards_block_them(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	static const struct {
		struct hold_share share;
		const char *cut, *whole; /* use of n1, which is cut, and of n2, which is not */
	} rows[] = {
		{ { 0, "n1-0", 5, 1, "2g.10gb", { 0, 2 } }, "1/5/1 0/0/0", "0/0/0 0/0/0" },
		{ { 0, "n1-0", 5, 1, NULL, { 0, 0 } }, "1/5/1!1 0/0/0", "0/0/0 0/0/0" },
		{ { 0, "n2-0", 5, 1, "2g.10gb", { 0, 2 } }, "0/0/0!1 0/0/0!1", "1/5/1!1 0/0/0" },
		{ { 0, "n9-0", 5, 1, "2g.10gb", { 0, 2 } }, "0/0/0!1 0/0/0!1", "0/0/0 0/0/0" },
		{ { 0, "n9-0", 5, 1, NULL, { 0, 0 } }, "0/0/0 0/0/0", "0/0/0 0/0/0" },
	};

	(void)state;
	put_node(c, &(struct made_node) { "n1", 2, 3, 40000, 100, "mig" });
	put_node(c, &(struct made_node) { "n2", 2, 3, 40000, 100, NULL });
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, &rows[i].share, 1, &app, 1), 0);
		assert_int_equal(hold(c, "b", "n2", HOLD_BOUND, &rows[i].share, 1, &app, 1), 0);
		expect_used(c, "n1", rows[i].cut);
		expect_used(c, "n2", rows[i].whole);
	}
	cluster_release(c, "a");
	cluster_release(c, "b");
	expect_used(c, "n1", "0/0/0 0/0/0");
	expect_used(c, "n2", "0/0/0 0/0/0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_containers_count_by_their_peak),
		cmocka_unit_test(only_init_then_nothing),
		cmocka_unit_test(holdings_wait_for_node_and_card),
		cmocka_unit_test(unreadable_counts_as_the_most_on_each_card),
		cmocka_unit_test(instances_occupy_their_slices),
		cmocka_unit_test(records_that_disagree_with_the_cards_block_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
