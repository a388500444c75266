/* Nodes for tests: cards by a few numbers. */
#ifndef TESTS_MAKE_NODE_H
#define TESTS_MAKE_NODE_H

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"
#include "model/placement/node_state.h"

/* GPU-<i>, an A100 of 81920 MiB for ten. */
static inline struct node_card make_card(unsigned i)
{
	struct node_card c = {
		.count = 10,
		.memory_mib = 81920,
		.cores = 100,
		.index = i,
		.healthy = true,
		.type = "NVIDIA A100-SXM4-80GB",
		.mode = "hami-core",
	};

	snprintf(c.uuid, sizeof c.uuid, "GPU-%u", i);
	return c;
}

static inline void add_card(struct node_state *n, struct node_card c)
{
	struct hm_err e;

	if (node_state_add_card(n, &c, &e) < 0)
		fail_msg("%s", e.msg);
}

static inline void take(struct node_state *n, size_t card, int64_t slots, int64_t memory, int64_t cores)
{
	node_state_take(n, card, &(struct card_use) { slots, memory, cores });
}

/* In both directions. */
static inline void join(struct node_state *n, const char *a, const char *b, int32_t score)
{
	int from = node_state_find(n, a), to = node_state_find(n, b);

	assert_true(from != NODE_NO_CARD && to != NODE_NO_CARD);
	assert_int_equal(node_state_set_pair_score(n, (size_t)from, (size_t)to, score, NULL), 0);
	assert_int_equal(node_state_set_pair_score(n, (size_t)to, (size_t)from, score, NULL), 0);
}

#endif
