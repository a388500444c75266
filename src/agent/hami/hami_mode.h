/* Mode hami, beside what every mode has: the API server, our Node and what is published on it, the pods of this node.
 * The one place where these parts are made, in order, and told of one another. */
#ifndef HM_AGENT_HAMI_HAMI_MODE_H
#define HM_AGENT_HAMI_HAMI_MODE_H

#include "agent/cards/card_health.h"
#include "agent/cards/driver.h"
#include "agent/cards/fleet.h"
#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/publish.h"
#include "agent/hami/hami_pods.h"
#include "agent/hami/mig_manager.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "agent/serve/offer.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

/* All borrowed. */
struct hami_mode_config {
	const struct agent_options *options;
	const struct agent_paths *paths;
	struct claims *claims;
	struct cluster *cluster; /* on */
	struct worker *worker;
	struct driver *driver;
	const struct card_health *cards; /* NULL: no health checks */
	void (*restart)(void *arg);      /* the options, settled anew, are others: the agent is to be made anew */
	void *arg;
};

struct hami_mode;

/* An API server that is away is no error. */
int hami_mode_new(struct loop *l, const struct hami_mode_config *config, struct hami_mode **out,
		  struct hm_err *e) HM_MUST_USE;
void hami_mode_free(struct hami_mode *m); /* after the offers that it made */
HM_DEFINE_AUTO(hami_mode, hami_mode_free);

/* nvidia.com/gpu, for one resource. */
int hami_mode_offer(struct hami_mode *m, struct offer **out, struct hm_err *e) HM_MUST_USE;
/* Its socket's name: "nvidia-gpu.sock". */
const char *hami_mode_socket(const struct hami_mode *m);

/* The cards are these now; borrowed until the next call. */
void hami_mode_take(struct hami_mode *m, const struct fleet *f);

struct publish *hami_mode_publish(const struct hami_mode *m);
struct mig_manager *hami_mode_mig(const struct hami_mode *m); /* NULL: another operating mode */
struct hami_pods *hami_mode_pods(const struct hami_mode *m);

#endif
