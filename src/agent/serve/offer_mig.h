/* Static MIG: instances that an administrator made, each a device of the kubelet's, by its own UUID. What a container
 * gets is what the kubelet chose: no scheduler and no API server are needed. */
#ifndef HM_AGENT_SERVE_OFFER_MIG_H
#define HM_AGENT_SERVE_OFFER_MIG_H

#include "agent/claims/claims.h"
#include "agent/options/options.h"
#include "agent/serve/offer.h"
#include "model/inventory.h"

/* All borrowed, but the texts. `profile` "": every profile (strategy single). `started` may be NULL: the files of this
 * claim are written. */
struct offer_mig_config {
	const struct agent_options *options;
	const struct claims *claims;
	const char *resource, *profile;
	void (*started)(void *arg, const struct claim *c);
	void *arg;
};

int offer_mig_new(const struct offer_mig_config *config, struct offer **out, struct hm_err *e) HM_MUST_USE;

/* A MIG device that is offered: it has all compute slices of its instance, and its profile is known. */
bool offer_mig_counts(const struct mig_device *d);

/* Strategy single: 1, every card is in MIG mode and all their devices are of one profile; 0, none is in MIG mode;
 * -HM_EINVAL for anything in between, naming it. */
int offer_mig_uniform(const struct inventory *inv, struct hm_err *e) HM_MUST_USE;

#endif
