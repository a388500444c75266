/* kube-scheduler stops looking for nodes at a share of the cluster, unless percentageOfNodesToScore is 100. Cards are
 * none of its business, so the free ones may be on the nodes that it left out. Pure. */
#ifndef HM_SCHED_VERBS_SAMPLED_H
#define HM_SCHED_VERBS_SAMPLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/placement/place.h"

/* Whether so many candidates of a cluster of so many nodes are what kube-scheduler's default leaves: just that many,
 * and not all. */
bool sampled_is_cut(size_t candidates, size_t nodes);

/* A share that was set by hand is told from a pod that may go to few nodes by asking again: each time kube-scheduler
 * begins where it stopped, and comes with just as many nodes that are others. One pod at a time is looked at, until it
 * is asked for with the same nodes, or SAMPLED_PATIENCE_MS long. All 0: none. */
enum { SAMPLED_TURNS = 2, SAMPLED_PATIENCE_MS = 600000 };
struct sampled_watch {
	uint64_t pod, names; /* sums */
	size_t candidates;   /* 0: none is looked at */
	unsigned turns;      /* how often there were others */
	uint64_t since_ms;
};

/* A pod was refused by all of these nodes. True: it is the one that is looked at, and had other nodes SAMPLED_TURNS
 * times. */
bool sampled_turns(struct sampled_watch *w, const char *uid, const struct refused_node *refused, size_t count,
		   size_t nodes, uint64_t now_ms);

#endif
