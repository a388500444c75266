/* CPU and memory in a Pod's or a Node's JSON, as kube-scheduler counts them. What cannot be read counts as not said:
 * nobody is refused for it. Pure. */
#ifndef HM_SCHED_VIEW_HOST_READ_H
#define HM_SCHED_VIEW_HOST_READ_H

#include "io/json.h"
#include "model/placement/node_state.h"

/* What the pod requests over its life: sidecars and app containers together, or an init container with the sidecars
 * before it, whichever is more; what the pod as a whole requests instead, where it says so; and its overhead. Up to
 * HOST_MOST. */
struct host_amount host_of_pod(const struct cJSON *pod);

/* The node's allocatable; -1: not said. */
struct host_amount host_of_node(const struct cJSON *node);

#endif
