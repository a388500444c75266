/* PreStartContainer's work: find out whose start it is, refuse it where a slot is still held, write what the start
 * needs for each container that it may be for. */
#ifndef HM_AGENT_SERVE_CONTAINER_START_H
#define HM_AGENT_SERVE_CONTAINER_START_H

#include <stddef.h>

#include "agent/container/binding.h"
#include "agent/serve/offer.h"
#include "core/err.h"

struct container_start_tools {
	struct binding_tools binding;
	struct offer *offer;
	struct hm_err *checkpoint_trouble; /* what was said last of the kubelet's checkpoint; kept for the next start */
};

/* -HM_EAGAIN where trying again soon may help; the message is what the pod's owner reads in its events. */
int container_start(const struct container_start_tools *t, const char *const *ids, size_t count,
		    struct hm_err *e) HM_MUST_USE;

#endif
