/* Chooses the node for a pod, and its cards there. Nothing is reserved: cluster_reserve does that with what comes out.
 */
#ifndef HM_MODEL_PLACEMENT_PLACE_H
#define HM_MODEL_PLACEMENT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/cluster.h"
#include "model/placement/fit.h"
#include "model/placement/node_order.h"

struct placer;

/* Policies for pods that have no wish, of node and cards; borrowed. NULL where memory is short. */
struct placer *placer_new(const char *node_policy, const char *card_policy);
void placer_free(struct placer *p);
HM_DEFINE_AUTO(placer, placer_free);

/* One more policy, of nodes and of cards, under its name; borrowed. */
void placer_set_policy(struct placer *p, const struct node_order *order);

struct place_request {
	const struct pod_ask *ask;
	const char *const *names; /* the candidates; NULL: all nodes */
	size_t count;
	/* What-if: nodes[i] stands in for names[i] where the cluster has no such node, what the pod itself has of cards
	 * and quota does not count, and nothing is changed. NULL: a pod that is asked for again gives up what is
	 * reserved for it. */
	const struct node_state *const *nodes;
};

struct refused_node {
	const char *name;
	bool unregistered; /* no such node, or none with cards; `why` says nothing then */
	struct refusal why;
};

/* Good until the next call or change. */
struct place_result {
	const struct node_state *node; /* NULL: it fits nowhere */
	const struct grant *grant;
	double score; /* node_score, before the pod */
	/* Nodes that were tried in vain: all, where it fits nowhere. */
	const struct refused_node *refused;
	size_t refused_count;
};

/* 1: placed; 0: it fits nowhere. -HM_EEXIST: the pod is bound or being bound; -HM_EINVAL: a wish that cannot be read,
 * in HAMi's words; -HM_ENOMEM. */
int place_pod(struct placer *p, struct cluster *c, const struct place_request *r, struct place_result *out,
	      struct hm_err *e) HM_MUST_USE;

#endif
