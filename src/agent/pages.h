/* The agent's HTTP pages, where they are wanted: /healthz and /readyz, /metrics. */
#ifndef HM_AGENT_PAGES_H
#define HM_AGENT_PAGES_H

#include "agent/cards/cards.h"
#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"
#include "agent/offers.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "agent/reload/reload.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"

/* All borrowed. */
struct pages_config {
	const struct agent_options *options;
	const struct agent_paths *paths;
	const struct claims *claims;
	const struct cluster *cluster;
	const struct offers *offers;
	const struct reload *reload;
	const struct cards *cards;
	struct worker *worker;
};

struct pages;

int pages_new(struct loop *l, const struct pages_config *config, struct pages **out, struct hm_err *e) HM_MUST_USE;
/* Nothing is served any more; what reads the cards' figures may still be in the worker. */
void pages_stop(struct pages *p);
/* After worker_free only. */
void pages_free(struct pages *p);

/* The cards, and with them perhaps the resources, are others. */
void pages_take(struct pages *p, const struct fleet *f);

#endif
