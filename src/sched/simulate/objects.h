/* What `kubectl get -o json` prints: a list of objects, or one. */
#ifndef HM_SCHED_SIMULATE_OBJECTS_H
#define HM_SCHED_SIMULATE_OBJECTS_H

#include "sched/view/pod_read.h"

static inline const struct cJSON *objects_first(const struct cJSON *tree)
{
	const struct cJSON *items = pod_member(tree, "items");

	return items != NULL ? items->child : tree;
}

/* NULL behind the last. */
static inline const struct cJSON *objects_next(const struct cJSON *tree, const struct cJSON *object)
{
	return object == tree ? NULL : object->next;
}

#endif
