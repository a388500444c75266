/* The kubelet's three questions, answered from snapshots: what to prefer, what a container gets, and that it may start.
 * None waits for NVML or the network. */
#ifndef HM_AGENT_SERVE_SERVICE_H
#define HM_AGENT_SERVE_SERVICE_H

#include <stdint.h>

#include "agent/cards/fleet.h"
#include "agent/claims/claims.h"
#include "agent/claims/counter.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/pod_names.h"
#include "agent/container/binding.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "agent/serve/offer.h"
#include "base/latency.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kubelet/device_plugin.h"

enum {
	/* A short wait inside PreStart beats an error: the kubelet comes again only after 10 to 15 s. */
	SERVICE_START_WAIT_MS = 2000,
	SERVICE_LOOK_MS = 100,
};

struct service_config {
	const struct agent_options *options;
	const struct agent_paths *paths;
	struct claims *claims;
	struct counter *counter;
	struct pending *pending;
	struct edits *edits;
	struct offer *offer;
	/* A container may start: its pod's name is worth looking up. */
	void (*started)(void *arg);
	/* Whether a claim's pod lives, as far as the kubelet tells. */
	enum pod_life (*life)(void *arg, const struct claim *c);
	void *arg;
	struct cluster *cluster;                      /* hears of slots that are given out unseen */
	void (*watchers)(void *arg, size_t watchers); /* as dp_handlers' */
	void *watchers_arg;
};

struct service_stats {
	uint64_t allocations, allocate_errors, starts, start_errors;
	uint64_t unseen; /* starts whose slot another pod's claim holds, nothing telling whether that pod lives */
	struct latency allocate, start; /* from the call to its answer, waiting included */
};

struct service;

/* All of config is borrowed. */
int service_new(struct loop *l, const struct service_config *config, struct service **out,
		struct hm_err *e) HM_MUST_USE;
void service_free(struct service *s); /* after the plugin: no call is open then */
HM_DEFINE_AUTO(service, service_free);

/* The cards to answer from; borrowed until the next call. */
void service_set_fleet(struct service *s, const struct fleet *fleet);
struct dp_handlers service_handlers(struct service *s);
struct service_stats service_stats(const struct service *s);

#endif
