/* What keeps a pod from a node before its cards are looked at, by the objects' JSON: spec.unschedulable, taints of
 * NoSchedule and NoExecute, nodeSelector and required node affinity, as kube-scheduler reads them. The extender is
 * asked about what is left of that; a snapshot has all nodes. Pods' affinity to pods, topology spread, ports and
 * volumes are not looked at. Untrusted. Pure; what is read is borrowed from the trees. */
#ifndef HM_SCHED_SIMULATE_SCREEN_H
#define HM_SCHED_SIMULATE_SCREEN_H

#include <stdbool.h>

#include "io/json.h"

/* The first that applies, in kube-scheduler's order. */
enum screen_reason {
	SCREEN_PASSES,
	SCREEN_UNSCHEDULABLE,
	SCREEN_TAINTED,
	SCREEN_NOT_SELECTED,
	SCREEN_SHORT, /* of CPU or memory: the scene's to say (scene.h) */
	SCREEN_REASONS
};

/* Zero: everybody may go there. Of more than 1,024 labels none counts; more taints than that nobody tolerates. */
struct screen_node {
	const char *name;
	const struct cJSON *labels, *taints; /* taints: NULL where none keeps anybody away */
	bool unschedulable, barred;
};

/* Zero: it goes anywhere. Of more than 1,024 tolerations none counts. */
struct screen_pod {
	const struct cJSON *tolerations, *selector, *affinity;
};

struct screen_node screen_node_of(const struct cJSON *node);
struct screen_pod screen_pod_of(const struct cJSON *pod);

enum screen_reason screen_pod_on(const struct screen_pod *p, const struct screen_node *n);

/* "nodes with taints" */
const char *screen_reason_words(enum screen_reason r);

#endif
