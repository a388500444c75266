/* Operating mode mig: a container's claim from what was made for its pod's reservations. */
#ifndef HM_AGENT_HAMI_MIG_FILL_H
#define HM_AGENT_HAMI_MIG_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/hami/mig_holds.h"
#include "core/err.h"
#include "model/claim_text.h"
#include "model/inventory.h"

/* The MIG devices of entry `entry` of the pod's device text, `count` of them, in the place of out's cards, which are
 * what that text names. -HM_EAGAIN: not made yet; -HM_EINVAL: never, in HAMi's words. */
int mig_fill(struct mig_holds *holds, const struct inventory *inv, const char *pod_uid, const char *container,
	     uint32_t entry, size_t count, struct claim *out, struct hm_err *e) HM_MUST_USE;

#endif
