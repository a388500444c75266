#include "make_hold.h"

#include "harness/sweep.h"

/* Each is looked for among the others of its node. */
static void too_many_shares(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	struct hold_share shares[HOLDING_MAX_SHARES + 1];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(shares); i++)
		shares[i] = (struct hold_share) { .uuid = "n1-0", .memory_mib = 1 };
	assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, shares, HM_COUNT(shares), &app, 1), -HM_EINVAL);
	assert_int_equal(cluster_holding_count(c), 0);
	assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, shares, HOLDING_MAX_SHARES, &app, 1), 0);
	expect_used(c, "n1", "4096/4096/0 0/0/0");
}

static void holdings_come_and_go(void **state)
{
	hm_auto(cluster) *c = two_nodes();

	(void)state;
	hold_one(c, "a", "n1", HOLD_BOUND, "n1-0", 500, 10);
	hold_one(c, "b", "n1", HOLD_BOUND, "n1-0", 700, 0);
	hold_one(c, "c", "n2", HOLD_RESERVED, "n2-0", 900, 100);
	expect_used(c, "n1", "2/1200/10 0/0/0");
	expect_used(c, "n2", "1/900/100");
	expect_held(c, 2100, 110);
	hold_one(c, "a", "n2", HOLD_BOUND, "n2-0", 1, 0); /* what a pod holds is what was said last */
	expect_used(c, "n1", "1/700/0 0/0/0");
	expect_used(c, "n2", "2/901/100");
	hold_one(c, "b", "n1", HOLD_TERMINATING, "n1-0", 700, 0);
	expect_used(c, "n1", "1/700/0 0/0/0");
	cluster_release(c, "b");
	cluster_release(c, "b");
	cluster_release(c, "never");
	expect_used(c, "n1", "0/0/0 0/0/0");
	expect_held(c, 901, 100);
	assert_int_equal(cluster_holding_count(c), 2);
	assert_null(cluster_find(c, "b"));
}

static void a_promise_ends_in_one_of_four_ways(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	struct hm_err e;

	(void)state;
	hold_one(c, "expires", "n2", HOLD_RESERVED, "n2-0", 1, 0);
	hold_one(c, "binds", "n2", HOLD_RESERVED, "n2-0", 10, 0);
	hold_one(c, "fails", "n2", HOLD_RESERVED, "n2-0", 100, 0);
	hold_one(c, "unknown", "n2", HOLD_RESERVED, "n2-0", 1000, 0);
	assert_true(cluster_next_expiry_ms(c) == 1000);
	assert_int_equal(cluster_confirm(c, "binds", "n1", &e), -HM_ENOTFOUND);
	assert_int_equal(cluster_confirm(c, "binds", "n2", &e), 0);
	assert_int_equal(cluster_confirm(c, "binds", "n2", &e), -HM_EEXIST);
	assert_string_equal(e.msg, "pod ns/binds is being bound to node n2");
	assert_int_equal(cluster_confirm(c, "fails", "n2", &e), 0);
	assert_int_equal(cluster_confirm(c, "unknown", "n2", &e), 0);
	assert_int_equal(cluster_expire(c, 999), 0);
	assert_int_equal(cluster_expire(c, 1000), 1);
	expect_used(c, "n2", "3/1110/0");
	assert_int_equal(cluster_confirm(c, "expires", "n2", &e), -HM_ENOTFOUND);
	cluster_bound(c, "binds");
	cluster_roll_back(c, "binds");
	cluster_roll_back(c, "fails");
	cluster_roll_back(c, "never");
	expect_used(c, "n2", "2/1010/0");
	hold_one(c, "unknown", "n2", HOLD_BOUND, "n2-0", 1000, 0);
	cluster_roll_back(c, "unknown");
	assert_int_equal(cluster_expire(c, UINT64_MAX), 0);
	expect_used(c, "n2", "2/1010/0");
	assert_true(cluster_next_expiry_ms(c) == UINT64_MAX);
	assert_int_equal(hold(c, "binds", "n1", HOLD_RESERVED, NULL, 0, NULL, 0), -HM_EEXIST);
	assert_int_equal(cluster_may_place(c, "binds", &e), -HM_EEXIST);
	assert_string_equal(e.msg, "pod ns/binds is bound to node n2");
	assert_int_equal(cluster_may_place(c, "fails", &e), 0);
}

static void a_reservation_made_again_has_its_new_time(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	struct hold_share s = { .uuid = "n2-0", .memory_mib = 5 };
	struct hm_err e;

	(void)state;
	hold_one(c, "a", "n1", HOLD_RESERVED, "n1-0", 1, 0);
	assert_int_equal(cluster_hold(c,
				      &(struct hold) { .uid = "a",
						       .name_space = "ns",
						       .name = "a",
						       .node = "n2",
						       .state = HOLD_RESERVED,
						       .expires_ms = 5000,
						       .shares = &s,
						       .share_count = 1 },
				      &e),
			 0);
	assert_int_equal(cluster_expire(c, 4999), 0);
	expect_used(c, "n1", "0/0/0 0/0/0");
	expect_used(c, "n2", "1/5/0");
	assert_int_equal(cluster_expire(c, 5000), 1);
	expect_used(c, "n2", "0/0/0");
}

static void a_grant_becomes_a_reservation(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	struct card_share share = { .card = 1, .memory_mib = 700, .cores = 7, .profile = NO_PROFILE };
	struct grant grant = { .shares = &share, .count = 1 };
	struct card_ask asks[] = { app };
	struct pod_ask ask = { .uid = "u", .name_space = "ns", .name = "p", .containers = asks, .count = 1 };
	struct hm_err e;

	(void)state;
	assert_int_equal(cluster_reserve(c, &ask, "never", &grant, 50, &e), -HM_ENOTFOUND);
	assert_int_equal(cluster_reserve(c, &ask, "n1", &grant, 50, &e), 0);
	expect_used(c, "n1", "0/0/0 1/700/7");
	assert_string_equal(cluster_holding_share(cluster_find(c, "u"), 0).uuid, "n1-1");
	assert_true(cluster_find(c, "u")->expires_ms == 50);
}

static void shares_can_be_read_again(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	static const struct hold_share in[] = { { 0, "n1-1", 500, 10, NULL, { 0 } },
						{ 1, "gone", 9856, 28, "2g.10gb", { 2, 2 } } };
	const struct holding *h;

	(void)state;
	assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, in, 2, init_app, 2), 0);
	h = cluster_find(c, "a");
	assert_string_equal(cluster_holding_node(h), "n1");
	assert_string_equal(cluster_holding_space(h), "ns");
	assert_int_equal(h->share_count, 2);
	for (size_t i = 0; i < 2; i++) {
		struct hold_share out = cluster_holding_share(h, i);
		assert_int_equal(out.container, in[i].container);
		assert_string_equal(out.uuid, in[i].uuid);
		assert_int_equal(out.memory_mib, in[i].memory_mib);
		assert_int_equal(out.cores, in[i].cores);
		assert_string_equal(out.profile, in[i].profile != NULL ? in[i].profile : "");
		assert_int_equal(out.at.start, in[i].at.start);
		assert_int_equal(out.at.size, in[i].at.size);
	}
}

static void amounts_that_make_no_sense_are_refused(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	static const struct hold_share bad[][2] = {
		{ { 0, "n1-0", -1, 0, NULL, { 0 } } },
		{ { 0, "n1-0", 1, -1, NULL, { 0 } } },
		{ { 1, "n1-0", 1, 1, NULL, { 0 } }, { 0, "n1-0", 1, 1, NULL, { 0 } } },
	};

	(void)state;
	hold_one(c, "a", "n1", HOLD_BOUND, "n1-0", 500, 10);
	for (size_t i = 0; i < HM_COUNT(bad); i++)
		assert_int_equal(hold(c, "a", "n1", HOLD_BOUND, bad[i], 2, &app, 1), -HM_EINVAL);
	expect_used(c, "n1", "1/500/10 0/0/0");
}

static void cordons_and_extremes(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct cluster_extremes x = cluster_extremes(c);

	(void)state;
	assert_int_equal(x.most_cards, 0);
	put_node(c, &(struct made_node) { "n1", 2, 10, 40000, 100, "mig" });
	put_node(c, &(struct made_node) { "n2", 1, 10, 80000, 50, NULL });
	x = cluster_extremes(c);
	assert_int_equal(x.most_cores, 100);
	assert_true(x.any_mig);
	assert_int_equal(x.least_memory_mib, 9856); /* an instance */
	assert_int_equal(x.most_memory_mib, 80000);
	assert_int_equal(x.most_cards, 2);
	cluster_remove_node(c, "n1");
	x = cluster_extremes(c);
	assert_int_equal(x.least_memory_mib, 80000);
	cluster_remove_node(c, "n2");
	x = cluster_extremes(c);
	assert_int_equal(x.least_memory_mib, 0);
	/* Those stay: a node that is away may come back. */
	assert_int_equal(x.most_memory_mib, 80000);
	assert_int_equal(x.most_cores, 100);
	assert_int_equal(x.most_cards, 2);
	assert_true(x.any_mig);
	put_node(c, &(struct made_node) { "n2", 1, 10, 80000, 50, NULL });
	cluster_cordon_node(c, "n2", "n2-0");
	cluster_cordon_node(c, "n1", "n1-0");
	assert_true(cluster_node(c, "n2")->cards[0].cordoned);
	cluster_cordon_node(c, "n2", NULL);
	assert_false(cluster_node(c, "n2")->cards[0].cordoned);
}

/* What fails for want of memory leaves all as it was: the old or the new, never half. */
static int scenario(void *arg)
{
	hm_auto(cluster) *c = cluster_new(1);
	static const struct made_node two = { "n1", 2, 3, 40000, 100, "mig" }, one = { "n1", 1, 3, 40000, 100, "mig" };
	static const struct hold_share first[] = { { 0, "n1-0", 9856, 28, "2g.10gb", { 0, 2 } } };
	static const struct hold_share second[] = { { 0, "n1-1", 9, 2, NULL, { 0, 0 } },
						    { 1, "n1-0", 9856, 28, "2g.10gb", { 2, 2 } },
						    { 1, "n1-7", 1, 1, NULL, { 0, 0 } } };
	struct node_state *n;
	struct hm_err e;
	int err;

	(void)arg;
	n = c != NULL ? make_node(c, &two) : NULL;
	if (n == NULL)
		return -HM_ENOMEM;
	err = cluster_put_node(c, n, &e);
	if (err < 0)
		return err;
	err = hold(c, "a", "n1", HOLD_BOUND, second, 3, init_app, 2);
	expect_used(c, "n1", err < 0 ? "0/0/0 0/0/0" : "1/9856/28 1/9/2!1");
	if (err == 0)
		err = hold(c, "b", "n1", HOLD_RESERVED, first, 1, &app, 1);
	if (err == 0)
		err = hold(c, "b", "n2", HOLD_RESERVED, first, 1, &app, 1);
	n = err == 0 ? make_node(c, &one) : NULL;
	if (n == NULL)
		return -HM_ENOMEM;
	err = cluster_put_node(c, n, &e);
	expect_used(c, "n1", err < 0 ? "1/9856/28 1/9/2!1" : "1/9856/28");
	assert_int_equal(busy(c, "n1", 0), 0xc);
	cluster_release(c, "a");
	expect_used(c, "n1", err < 0 ? "0/0/0 0/0/0" : "0/0/0");
	return err;
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	sweep_check("cluster", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_shares),
		cmocka_unit_test(holdings_come_and_go),
		cmocka_unit_test(a_promise_ends_in_one_of_four_ways),
		cmocka_unit_test(a_reservation_made_again_has_its_new_time),
		cmocka_unit_test(a_grant_becomes_a_reservation),
		cmocka_unit_test(shares_can_be_read_again),
		cmocka_unit_test(amounts_that_make_no_sense_are_refused),
		cmocka_unit_test(cordons_and_extremes),
		cmocka_unit_test(survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
