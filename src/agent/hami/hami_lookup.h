/* Who starts where the kubelet's checkpoint cannot be read: the pod by the kubelet's list, the container as far as the
 * list and the pod's status say. */
#ifndef HM_AGENT_HAMI_HAMI_LOOKUP_H
#define HM_AGENT_HAMI_HAMI_LOOKUP_H

#include <stddef.h>

#include "agent/claims/prestart.h"
#include "agent/cluster/pod_lookup.h"
#include "agent/cluster/pods.h"
#include "core/err.h"

/* Fills in the target's pod and container. -HM_EAGAIN where they are not known now, or where an init container, which
 * is on no list, has not ended, holds as many devices and would get something else. lookup NULL: never known. */
int hami_lookup_target(struct pod_lookup *lookup, const struct pods *pods, const char *const *ids, size_t count,
		       struct prestart_target *target, struct hm_err *e) HM_MUST_USE;

#endif
