#include "make_cluster.h"

#include <stdlib.h>

#include "harness/sweep.h"

static const struct card_ask app = { .kind = ASK_APP, .count = 1 };
static const struct card_ask init_app[] = { { .kind = ASK_INIT, .count = 1 }, { .kind = ASK_APP, .count = 1 } };

static int hold(struct cluster *c, const char *uid, const char *node, enum hold_state state,
		const struct hold_share *shares, size_t count, const struct card_ask *asks, size_t ask_count)
{
	struct hm_err e;

	return cluster_hold(c,
			    &(struct hold) { .uid = uid,
					     .name_space = "ns",
					     .name = uid,
					     .node = node,
					     .state = state,
					     .expires_ms = 1000,
					     .asks = asks,
					     .ask_count = ask_count,
					     .shares = shares,
					     .share_count = count },
			    &e);
}

/* One share of one app container. */
static void hold_one(struct cluster *c, const char *uid, const char *node, enum hold_state state, const char *card,
		     int32_t memory_mib, int32_t cores)
{
	struct hold_share s = { .uuid = card, .memory_mib = memory_mib, .cores = cores };

	assert_int_equal(hold(c, uid, node, state, &s, 1, &app, 1), 0);
}

static void expect_held(struct cluster *c, int64_t memory_mib, int64_t cores)
{
	struct quota_view v = { 0 };
	size_t at = 0;

	if (!quotas_next(cluster_quotas(c), &at, &v))
		v = (struct quota_view) { 0 };
	assert_true(v.held.memory_mib == memory_mib);
	assert_true(v.held.cores == cores);
}

static struct cluster *two_nodes(void)
{
	struct cluster *c = cluster_new(1);

	put_node(c, &(struct made_node) { "n1", 2, 10, 40000, 100, NULL });
	put_node(c, &(struct made_node) { "n2", 1, 10, 40000, 100, NULL });
	return c;
}

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
	assert_int_equal(cluster_node_count(c), 0);
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
	assert_int_equal(cluster_node_count(c), 1);
	cluster_release(c, "a");
	expect_used(c, "n1", "1/1/0");
	cluster_remove_node(c, "n1");
	cluster_release(c, "b");
	assert_int_equal(cluster_holding_count(c), 0);
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

/* ---- what cannot be read */

static void hold_unreadable(struct cluster *c, const char *uid, const char *node, const struct card_ask *asks, size_t n)
{
	struct hm_err e;

	assert_int_equal(cluster_hold(c,
				      &(struct hold) { .uid = uid,
						       .name_space = "ns",
						       .name = uid,
						       .node = node,
						       .state = HOLD_BOUND,
						       .unreadable = true,
						       .asks = asks,
						       .ask_count = n },
				      &e),
			 0);
}

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

static uint64_t busy(const struct cluster *c, const char *node, size_t card)
{
	return cluster_node(c, node)->cards[card].busy;
}

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

/* ---- the rest */

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
	assert_int_equal(x.least_memory_mib, 40000);
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

/* Free milli of CPU and MiB of the node. */
static void expect_host(const struct cluster *c, const char *node, int64_t cpu_milli, int64_t host_mib)
{
	const struct node_state *n = cluster_node(c, node);

	assert_non_null(n);
	assert_int_equal(n->cpu_milli, cpu_milli);
	assert_int_equal(n->host_mib, host_mib);
}

static void take_host(struct cluster *c, const char *uid, const char *node, int64_t cpu_milli, int64_t host_mib)
{
	struct hm_err e;

	assert_int_equal(cluster_take_host(c, uid, node, (struct host_amount) { cpu_milli, host_mib }, &e), 0);
}

static void put_with_host(struct cluster *c, const char *name, int cards, int64_t cpu_milli, int64_t host_mib)
{
	struct node_state *n = make_node(c, &(struct made_node) { name, cards, 10, 40000, 100, NULL });
	struct hm_err e;

	assert_non_null(n);
	n->cpu_milli = cpu_milli;
	n->host_mib = host_mib;
	assert_int_equal(cluster_put_node(c, n, &e), 0);
}

static void the_host_is_what_pods_leave(void **state)
{
	hm_auto(cluster) *c = two_nodes();

	(void)state;
	take_host(c, "before", "n1", 1000, 100);
	expect_host(c, "n1", -1, -1);
	cluster_set_host(c, "n1", (struct host_amount) { 8000, 1000 });
	expect_host(c, "n1", 7000, 900);
	take_host(c, "no cards", "n1", 3000, 0);
	take_host(c, "no cards", "n1", 3000, 0); /* told again */
	expect_host(c, "n1", 4000, 900);
	take_host(c, "no cards", "n1", 2000, 50); /* resized */
	expect_host(c, "n1", 5000, 850);
	put_with_host(c, "n1", 1, 8000, 1000); /* other cards */
	expect_host(c, "n1", 5000, 850);
	put_with_host(c, "n1", 2, 2500, -1); /* and a smaller host: never less than nothing */
	expect_host(c, "n1", 0, -1);
	cluster_remove_node(c, "n1");
	cluster_release(c, "before");
	put_with_host(c, "n1", 2, 8000, 1000);
	expect_host(c, "n1", 6000, 950);
	take_host(c, "no cards", "n3", 2000, 50); /* bound elsewhere, where nothing is known of */
	expect_host(c, "n1", 8000, 1000);
	cluster_release(c, "no cards");
	cluster_release(c, "no cards");
	assert_int_equal(cluster_node_count(c), 2);
}

/* A promise counts until it is taken back; what the watch says is no promise. */
static void promises_take_of_the_host(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { ASK_APP, 1, 1000, 0, 0 };
	struct pod_ask ask = { "a", "ns", "a", &container, 1, 1, 3000, 300, { 0 } };
	struct card_share share = { .card = 0, .memory_mib = 1000, .profile = NO_PROFILE };
	struct grant g = { &share, 1, 1 };
	struct hm_err e;

	(void)state;
	put_with_host(c, "n1", 1, 8000, 1000);
	put_with_host(c, "n2", 1, 8000, 1000);
	assert_int_equal(cluster_reserve(c, &ask, "n1", &g, 1000, &e), 0);
	expect_host(c, "n1", 5000, 700);
	assert_int_equal(cluster_reserve(c, &ask, "n2", &g, 1000, &e), 0);
	expect_host(c, "n1", 8000, 1000);
	expect_host(c, "n2", 5000, 700);
	assert_int_equal(cluster_expire(c, 1000), 1);
	expect_host(c, "n2", 8000, 1000);
	assert_int_equal(cluster_reserve(c, &ask, "n2", &g, 2000, &e), 0);
	assert_int_equal(cluster_confirm(c, "a", "n2", &e), 0);
	cluster_roll_back(c, "a");
	expect_host(c, "n2", 8000, 1000);
	/* The watch first, our own answer later: it counts once. */
	assert_int_equal(cluster_reserve(c, &ask, "n2", &g, 3000, &e), 0);
	take_host(c, "a", "n2", 3000, 300);
	expect_host(c, "n2", 5000, 700);
	cluster_bound(c, "a");
	cluster_release(c, "a");
	expect_host(c, "n2", 8000, 1000);
	/* Somebody else bound it to the other node. */
	assert_int_equal(cluster_reserve(c, &ask, "n1", &g, 4000, &e), 0);
	take_host(c, "a", "n2", 3000, 300);
	expect_host(c, "n1", 8000, 1000);
	assert_int_equal(cluster_expire(c, 4000), 1);
	expect_host(c, "n2", 5000, 700);
}

/* A promise has its share of the cards and of the host, or nothing. */
static int promise_scenario(void *arg)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { ASK_APP, 1, 1000, 0, 0 };
	struct pod_ask ask = { "a", "ns", "a", &container, 1, 1, 3000, 300, { 0 } };
	struct card_share share = { .card = 0, .memory_mib = 1000, .profile = NO_PROFILE };
	struct grant g = { &share, 1, 1 };
	struct node_state *n = c != NULL ? make_node(c, &(struct made_node) { "n1", 1, 10, 40000, 100, NULL }) : NULL;
	struct hm_err e;
	int err;

	(void)arg;
	if (n == NULL)
		return -HM_ENOMEM;
	err = cluster_put_node(c, n, &e);
	if (err < 0)
		return err;
	cluster_set_host(c, "n1", (struct host_amount) { 8000, 1000 });
	err = cluster_reserve(c, &ask, "n1", &g, 1000, &e);
	expect_used(c, "n1", err < 0 ? "0/0/0" : "1/1000/0");
	expect_host(c, "n1", err < 0 ? 8000 : 5000, err < 0 ? 1000 : 700);
	if (err == 0)
		err = cluster_take_host(c, "a", "n2", (struct host_amount) { 3000, 300 }, &e);
	if (err == 0)
		expect_host(c, "n1", 8000, 1000);
	return err;
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	sweep_check("cluster", scenario, NULL);
	sweep_check("a promise", promise_scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_shares),
		cmocka_unit_test(holdings_come_and_go),
		cmocka_unit_test(init_containers_count_by_their_peak),
		cmocka_unit_test(only_init_then_nothing),
		cmocka_unit_test(a_promise_ends_in_one_of_four_ways),
		cmocka_unit_test(a_reservation_made_again_has_its_new_time),
		cmocka_unit_test(holdings_wait_for_node_and_card),
		cmocka_unit_test(shares_can_be_read_again),
		cmocka_unit_test(amounts_that_make_no_sense_are_refused),
		cmocka_unit_test(unreadable_counts_as_the_most_on_each_card),
		cmocka_unit_test(instances_occupy_their_slices),
		cmocka_unit_test(records_that_disagree_with_the_cards_block_them),
		cmocka_unit_test(cordons_and_extremes),
		cmocka_unit_test(a_grant_becomes_a_reservation),
		cmocka_unit_test(the_host_is_what_pods_leave),
		cmocka_unit_test(promises_take_of_the_host),
		cmocka_unit_test(survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
