/* HAMi's resource (nvidia.com/gpu): each card stands in the kubelet's list deviceSplitCount times, and what a container
 * holds is what the scheduler wrote into its pod's annotations. The ids are counters. */
#ifndef HM_AGENT_HAMI_OFFER_HAMI_H
#define HM_AGENT_HAMI_OFFER_HAMI_H

#include "agent/claims/claims.h"
#include "agent/hami/hami_classic.h"
#include "agent/hami/hami_late.h"
#include "agent/options/options.h"
#include "agent/serve/offer.h"

/* All borrowed. */
struct offer_hami_config {
	const struct agent_options *options;
	const struct claims *claims;
	struct hami_late *late;
	struct hami_classic *classic;
};

int offer_hami_new(const struct offer_hami_config *config, struct offer **out, struct hm_err *e) HM_MUST_USE;

#endif
