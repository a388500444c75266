/* What this node offers to the kubelet: the resource of the agent's mode, and where MIG devices have resources of their
 * own, those. */
#ifndef HM_AGENT_OFFERS_H
#define HM_AGENT_OFFERS_H

#include "agent/cards/cards.h"
#include "agent/claims/claims.h"
#include "agent/claims/counter.h"
#include "agent/claims/pending.h"
#include "agent/cluster/cluster.h"
#include "agent/container/edits.h"
#include "agent/hami/hami_mode.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "agent/serve/mig_static.h"
#include "agent/serve/resource.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"

/* All borrowed. */
struct offers_config {
	const struct agent_options *options;
	const struct agent_paths *paths;
	struct claims *claims;
	struct counter *counter;
	struct pending *pending;
	struct edits *edits;
	struct cluster *cluster;
	struct worker *worker;
	struct cards *cards;
	uint64_t started_ms;        /* as registrar_config's */
	void (*started)(void *arg); /* as service_config's, and the next */
	enum pod_life (*life)(void *arg, const struct claim *c);
	void (*registered)(void *arg); /* the kubelet took a registration */
	void (*restart)(void *arg);    /* as hami_mode_config's */
	void *arg;
};

struct offers;

int offers_new(struct loop *l, const struct offers_config *config, struct offers **out, struct hm_err *e) HM_MUST_USE;
void offers_free(struct offers *o);
HM_DEFINE_AUTO(offers, offers_free);

/* The cards are these now; borrowed until the next take. -HM_EINVAL where they cannot be offered as configured. */
int offers_take(struct offers *o, const struct fleet *f, struct hm_err *e) HM_MUST_USE;
/* Nothing is registered before this. */
void offers_start(struct offers *o);
/* The kubelet sees us go. */
void offers_stop(struct offers *o);

const struct resource *offers_main(const struct offers *o);
/* All resources to out; how many. The main one is the first. MIG devices' come with the cards. */
enum { OFFERS_MAX = MIG_STATIC_MAX + 1 };
size_t offers_list(const struct offers *o, const struct resource *out[static OFFERS_MAX]);
bool offers_has_mig(const struct offers *o);           /* there may be more than the main one */
struct hami_mode *offers_hami(const struct offers *o); /* NULL: another mode */

#endif
