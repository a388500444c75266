/* What pods hold, by the line, for tests of the cluster. */
#ifndef TESTS_MAKE_HOLD_H
#define TESTS_MAKE_HOLD_H

#include "make_cluster.h"

HM_UNUSED static const struct card_ask app = { .kind = ASK_APP, .count = 1 };
HM_UNUSED static const struct card_ask init_app[] = { { .kind = ASK_INIT, .count = 1 },
						      { .kind = ASK_APP, .count = 1 } };

HM_UNUSED static int hold(struct cluster *c, const char *uid, const char *node, enum hold_state state,
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

/* Nobody can tell what. */
HM_UNUSED static void hold_unreadable(struct cluster *c, const char *uid, const char *node, const struct card_ask *asks,
				      size_t n)
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

/* One share of one app container. */
HM_UNUSED static void hold_one(struct cluster *c, const char *uid, const char *node, enum hold_state state,
			       const char *card, int32_t memory_mib, int32_t cores)
{
	struct hold_share s = { .uuid = card, .memory_mib = memory_mib, .cores = cores };

	assert_int_equal(hold(c, uid, node, state, &s, 1, &app, 1), 0);
}

HM_UNUSED static void expect_held(struct cluster *c, int64_t memory_mib, int64_t cores)
{
	struct quota_view v = { 0 };
	size_t at = 0;

	if (!quotas_next(cluster_quotas(c), &at, &v))
		v = (struct quota_view) { 0 };
	assert_true(v.held.memory_mib == memory_mib);
	assert_true(v.held.cores == cores);
}

HM_UNUSED static struct cluster *two_nodes(void)
{
	struct cluster *c = cluster_new(1);

	put_node(c, &(struct made_node) { "n1", 2, 10, 40000, 100, NULL });
	put_node(c, &(struct made_node) { "n2", 1, 10, 40000, 100, NULL });
	return c;
}

/* That are there. */
HM_UNUSED static size_t node_count(const struct cluster *c)
{
	const struct node_state *n;
	size_t count = 0;

	for (size_t at = 0; cluster_next_node(c, &at, &n);)
		count++;
	return count;
}

HM_UNUSED static uint64_t busy(const struct cluster *c, const char *node, size_t card)
{
	return cluster_node(c, node)->cards[card].busy;
}

#endif
