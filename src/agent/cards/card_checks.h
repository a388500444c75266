/* The health checks as the agent has them: made from the options, told to the log, the Node and the pods. */
#ifndef HM_AGENT_CARDS_CARD_CHECKS_H
#define HM_AGENT_CARDS_CARD_CHECKS_H

#include "agent/cards/card_health.h"
#include "agent/cards/driver.h"
#include "agent/cards/fleet.h"
#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"

/* All borrowed. */
struct card_checks_config {
	const struct agent_options *options;
	const struct agent_paths *paths;
	struct worker *worker;
	struct driver *driver;
	const struct claims *claims;
	struct cluster *cluster;
	/* The health of a card changed: the fleet is to be judged anew. From the loop, never from card_checks_fleet. */
	void (*changed)(void *arg);
	void *arg;
};

struct card_checks;

/* Without any check configured there is nothing to do, and all cards are well. */
int card_checks_new(struct loop *l, const struct card_checks_config *config, struct card_checks **out,
		    struct hm_err *e) HM_MUST_USE;
/* After worker_free only. */
void card_checks_free(struct card_checks *c);

/* What a scan found (as fleet_new; NULL: no driver), judged. */
int card_checks_scanned(struct card_checks *c, const struct fleet *before, const struct inventory *scanned,
			struct fleet **out, struct hm_err *e) HM_MUST_USE;
/* The same cards, judged anew. */
int card_checks_judge(struct card_checks *c, const struct fleet *f, struct fleet **out, struct hm_err *e) HM_MUST_USE;

const struct card_health *card_checks_health(const struct card_checks *c); /* NULL: no checks */

#endif
