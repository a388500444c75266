/* /metrics: what the agent counts and sees, in Prometheus' text format. The page is made in the loop from what is in
 * memory and from the containers' regions; NVML is never asked here (agent/cards/card_usage.h).
 * docs/contracts/metrics.md */
#ifndef HM_AGENT_METRICS_METRICS_H
#define HM_AGENT_METRICS_METRICS_H

#include <stddef.h>

#include "agent/cards/card_usage.h"
#include "agent/cards/cards.h"
#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/publish.h"
#include "agent/hami/hami_pods.h"
#include "agent/hami/mig_manager.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "agent/reload/reload.h"
#include "agent/serve/resource.h"
#include "core/err.h"
#include "io/http_server.h"
#include "io/loop.h"

#define METRICS_HAMI_ADDRESS ":9394" /* of HAMi's vGPUmonitor */

enum { METRICS_MAX_RESOURCES = 64 };

/* All borrowed. */
struct metrics_sources {
	const struct agent_options *options;
	const struct agent_paths *paths;
	const struct claims *claims;
	const struct cluster *cluster; /* NULL: none */
	const struct publish *publish; /* NULL: another mode than hami */
	const struct hami_pods *pods;  /* likewise */
	const struct mig_manager *mig; /* NULL: another operating mode */
	const struct cards *cards;
	const struct card_usage *usage;
	const struct reload *reload; /* NULL: none */
	const struct resource *resources[METRICS_MAX_RESOURCES];
	size_t resource_count;
};

/* The page; an http_page's get, its arg a struct metrics_sources. */
int metrics_get(void *sources, struct str *body);

/* *sources is borrowed for the server's life. */
int metrics_serve(struct loop *l, const char *address, struct metrics_sources *sources, struct http_server **out,
		  struct hm_err *e) HM_MUST_USE;

#endif
