/* hami.com/vgpu: each card is cut into equal slots, and the ids alone say what a container holds. Needs no scheduler
 * and no API server. */
#ifndef HM_AGENT_SERVE_OFFER_SLICES_H
#define HM_AGENT_SERVE_OFFER_SLICES_H

#include "agent/claims/claims.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "agent/serve/offer.h"
#include "model/slots.h"

/* Options, paths and claims are borrowed. The node file (hami-smi's) is written at each take. */
int offer_slices_new(const struct agent_options *options, const struct agent_paths *paths, const struct claims *claims,
		     struct offer **out, struct hm_err *e) HM_MUST_USE;

/* Grants of slots of one card that are no neighbours, in static slicing. */
uint64_t offer_slices_broken_runs(const struct offer *o);

#endif
