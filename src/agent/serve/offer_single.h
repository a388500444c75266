/* --mig-strategy=single: one resource name for whichever the node has, cards as a whole or MIG devices of one profile.
 * Which it is, the cards say at each take. */
#ifndef HM_AGENT_SERVE_OFFER_SINGLE_H
#define HM_AGENT_SERVE_OFFER_SINGLE_H

#include "agent/serve/offer.h"

/* Both move in, whether this succeeds or not. A start on a MIG device is told to `whole` as well, which tells the
 * scheduler. */
int offer_single_new(struct offer *take_whole, struct offer *take_mig, struct offer **out,
		     struct hm_err *e) HM_MUST_USE;

#endif
