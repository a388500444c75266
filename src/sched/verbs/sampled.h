/* kube-scheduler stops looking for nodes at a share of the cluster, unless percentageOfNodesToScore is 100. Cards are
 * none of its business, so the free ones may be on the nodes that it left out. Pure. */
#ifndef HM_SCHED_VERBS_SAMPLED_H
#define HM_SCHED_VERBS_SAMPLED_H

#include <stdbool.h>
#include <stddef.h>

/* Whether so many candidates of a cluster of so many nodes are what kube-scheduler's default leaves: just that many,
 * and not all. Where the share was set to something else it cannot be told from a pod that may go to few nodes. */
bool sampled_is_cut(size_t candidates, size_t nodes);

#endif
