/* The node's cards as they stand now: what each scan of the driver finds, judged by the health checks. A fleet that
 * differs from the last one is given on; until whoever is given it has taken it, the last one holds. */
#ifndef HM_AGENT_CARDS_CARDS_H
#define HM_AGENT_CARDS_CARDS_H

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

/* Called from the loop, never once cards_stop was called. */
struct cards_listener {
	/* The cards are these now; borrowed until the next take has succeeded. Negative: they cannot be offered. */
	int (*take)(void *arg, const struct fleet *f, struct hm_err *e);
	/* After each scan that found a driver, and whose cards were taken. */
	void (*scanned)(void *arg);
	/* The first cards cannot be offered, or there is no driver and --fail-on-init-error. */
	void (*failed)(void *arg, const struct hm_err *why);
	void *arg;
};

struct cards;

/* Starts the first scan at once, so early in the program's start that it runs beside all else. Options and worker are
 * borrowed. */
int cards_new(struct loop *l, struct worker *w, const struct agent_options *o, const struct cards_listener *listener,
	      struct cards **out, struct hm_err *e) HM_MUST_USE;
/* The health checks. Before the loop runs; all is borrowed. */
int cards_check(struct cards *c, const struct agent_paths *paths, const struct claims *claims, struct cluster *cluster,
		struct hm_err *e) HM_MUST_USE;
/* No more scans; `closed` as driver_stop's. */
void cards_stop(struct cards *c, void (*closed)(void *arg), void *arg);
/* After worker_free only; see driver_free. */
void cards_free(struct cards *c, bool worker_ended);

const struct fleet *cards_fleet(const struct cards *c); /* NULL before the first scan; good until the next take */
struct driver *cards_driver(const struct cards *c);
const struct card_health *cards_health(const struct cards *c); /* NULL: no checks */

#endif
