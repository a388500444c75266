/* Clusters by the line, for tests of placement. */
#ifndef TESTS_MAKE_CLUSTER_H
#define TESTS_MAKE_CLUSTER_H

#include "harness/unit.h"

#include <stdio.h>
#include <string.h>

#include "model/placement/cluster.h"

/* Cards "<name>-0", "-1", ... of one kind; cut into MIG instances where mode is "mig". */
struct made_node {
	const char *name;
	int cards;
	int32_t count, memory_mib, cores;
	const char *mode; /* NULL: "hami-core" */
};

HM_UNUSED static struct node_state *make_node(struct cluster *c, const struct made_node *m)
{
	struct node_state *n = node_state_new(m->name, cluster_texts(c));
	struct hm_err e;

	for (int i = 0; n != NULL && i < m->cards; i++) {
		struct node_card card = {
			.count = m->count,
			.memory_mib = m->memory_mib,
			.cores = m->cores,
			.index = (uint32_t)i,
			.healthy = true,
			.type = "NVIDIA A100-SXM4-40GB",
			.mode = m->mode != NULL ? m->mode : "hami-core",
		};
		static const struct mig_placement places[] = { { 0, 2 }, { 2, 2 }, { 4, 2 } };
		snprintf(card.uuid, sizeof card.uuid, "%s-%d", m->name, i);
		if (node_state_add_card(n, &card, &e) < 0 ||
		    (strcmp(card.mode, "mig") == 0 &&
		     node_state_add_profile(
			     n,
			     &(struct card_profile) { .name = "2g.10gb", .memory_mib = 9856, .cores = 28, .slices = 2 },
			     places, HM_COUNT(places), &e) < 0)) {
			node_state_free(n);
			return NULL;
		}
	}
	return n;
}

HM_UNUSED static void put_node(struct cluster *c, const struct made_node *m)
{
	struct hm_err e;
	struct node_state *n = make_node(c, m);

	assert_non_null(n);
	assert_int_equal(cluster_put_node(c, n, &e), 0);
}

/* slots/MiB/cores of all cards: "1/500/10 0/0/0", and "!2" behind a card with two blockers. */
HM_UNUSED static void expect_used(const struct cluster *c, const char *node, const char *want)
{
	const struct node_state *n = cluster_node(c, node);
	char got[512] = "";
	size_t at = 0;

	assert_non_null(n);
	for (size_t i = 0; i < n->count; i++) {
		const struct card_use *u = &n->used[i];
		at += (size_t)snprintf(got + at, sizeof got - at, "%s%lld/%lld/%lld", i > 0 ? " " : "",
				       (long long)u->slots, (long long)u->memory_mib, (long long)u->cores);
		if (n->cards[i].blocked > 0)
			at += (size_t)snprintf(got + at, sizeof got - at, "!%u", n->cards[i].blocked);
	}
	assert_string_equal(got, want);
}

#endif
