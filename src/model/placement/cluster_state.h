/* What a cluster is made of, for the two files that are one: cluster.c changes it, cluster_look.c reads it. */
#ifndef HM_MODEL_PLACEMENT_CLUSTER_STATE_H
#define HM_MODEL_PLACEMENT_CLUSTER_STATE_H

#include "core/link.h"
#include "model/placement/cluster.h"
#include "model/placement/host_use.h"
#include "model/placement/node_book.h"

struct cluster {
	struct map
		*books; /* struct node_book by name; one lives while its node is there or pods have something of it */
	struct map *holdings; /* struct holding by pod UID */
	struct host_uses *hosts;
	struct quotas *quotas;
	struct budgets *budgets;
	struct texts *texts;
	struct link reserved; /* struct holding.of_reserved */
	uint32_t lists;       /* of all pods, begun */
	struct cluster_extremes extremes;
	bool least_known;           /* of the extremes */
	struct hold_share *scratch; /* of cluster_reserve */
	size_t scratch_cap;
};

#endif
