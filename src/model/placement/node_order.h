/* Which of the nodes that a pod fits on gets it. */
#ifndef HM_MODEL_PLACEMENT_NODE_ORDER_H
#define HM_MODEL_PLACEMENT_NODE_ORDER_H

#include "model/placement/fit.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

/* A policy; the node with the smallest number gets the pod, among equal ones that whose name comes first. */
struct node_order {
	const char *name;
	/* Of a node as it is, before the pod: nodes are tried in this order until one fits. */
	double (*before)(const struct node_state *n);
	/* In its place: of a node that fits and what the pod would have there. Every node is tried then. */
	double (*after)(void *arg, const struct node_state *n, const struct pod_ask *ask, const struct grant *g);
	/* Of cards, for pods whose card policy has this name; NULL: as card policies unknown to HAMi are taken. */
	card_rank_fn *card_rank;
	void *arg;
	/* Of each pod, before its first node or card; NULL: nothing to do. */
	void (*begin)(void *arg, const struct pod_ask *ask);
	/* Then: the pod is there to be placed, by whatever policy, and not only asked about; NULL: it is all one. */
	void (*came)(void *arg, const struct pod_ask *ask);
	/* What `after` and `card_rank` say stays as it is, of the same cards for the same pod, while these do: of the
	 * policy, and of a node's CPU and memory as far as they count. Both look random. NULL, both: nobody knows. */
	uint64_t (*state)(void *arg);
	uint64_t (*host)(void *arg, const struct node_state *n);
};

/* "spread": the emptiest node; any other text, and NULL: "binpack", the fullest. */
const struct node_order *node_order_find(const char *policy);

/* HAMi's: ten for each of slots, cores and memory where all of it is taken; 0 where one of them has no total. */
double node_score(const struct node_state *n);

#endif
