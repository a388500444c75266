/* PreStartContainer's work: find out whose start it is, refuse it where a slot is still held, write what the start
 * needs for each container that it may be for. */
#ifndef HM_AGENT_SERVE_CONTAINER_START_H
#define HM_AGENT_SERVE_CONTAINER_START_H

#include <stddef.h>

#include "agent/cluster/cluster.h"
#include "agent/cluster/pod_names.h"
#include "agent/container/binding.h"
#include "agent/serve/offer.h"
#include "core/err.h"

struct container_start_tools {
	struct binding_tools binding;
	struct offer *offer;
	struct hm_err *checkpoint_trouble; /* what was said last of the kubelet's checkpoint; kept for the next start */
	enum pod_life (*life)(void *arg, const struct claim *c); /* as service_config's */
	void *arg;
	struct cluster *cluster;
	uint64_t *unseen; /* counts as service_stats' */
};

/* A slot that a claim of another pod holds is given out when that pod has ended: by /proc, where we see the node's
 * containers there, else by `life`. Where neither tells it is given out too, since the slots of ended pods would be
 * lost for good; the log, an event of the node and `unseen` say so.
 * -HM_EAGAIN where trying again soon may help; the message is what the pod's owner reads in its events. */
int container_start(const struct container_start_tools *t, const char *const *ids, size_t count,
		    struct hm_err *e) HM_MUST_USE;

#endif
