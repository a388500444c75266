/* HAMi's label hami.io/vgpu-node on a pod that is bound, by which some tools select: a call of its own, since the API
 * server takes no labels out of a Binding. Nobody waits for it, and it is tried once. */
#ifndef HM_SCHED_BIND_BIND_LABEL_H
#define HM_SCHED_BIND_BIND_LABEL_H

#include <stdbool.h>

#include "kube/client.h"

/* Kubernetes' rule for label values; names of nodes may be longer. */
bool bind_label_can_say(const char *node);

/* Nothing where it cannot be said. The pod of that UID alone. */
void bind_label_set(struct kube_client *c, const char *name_space, const char *pod, const char *uid, const char *node);

#endif
