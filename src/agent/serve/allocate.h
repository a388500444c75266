/* From the kubelet's device ids to what a container holds, and the preferred ids. Pure but for memory: no file, no
 * clock, no network; an Allocate that errs kills its pod for good and one that waits stalls the node. */
#ifndef HM_AGENT_SERVE_ALLOCATE_H
#define HM_AGENT_SERVE_ALLOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "core/err.h"
#include "kubelet/device_plugin.h"
#include "model/claim_text.h"
#include "model/slots.h"

/* The claim for these ids (number, resource, devices, cards set; pod unknown, state ALLOCATED). *broken (may be NULL):
 * the slots of a card are no neighbours. -HM_EINVAL none or repeated ids, -HM_ENOTFOUND ids that this node does not
 * have, -HM_EPROTO ids that are none. Needs claim_fini on success. */
int allocate_claim(const struct slots *s, const char *resource, const char *const *ids, size_t count, uint64_t number,
		   struct claim *out, bool *broken, struct hm_err *e) HM_MUST_USE;

/* Writes up to req->size of the request's own strings to out (room for all available and must; *count of them). Never
 * errs for what the kubelet says about devices: ids of lost cards are left to the end, and where no good answer exists
 * the first ones are as good as any. -HM_ENOMEM alone. */
int allocate_prefer(const struct slots *s, const struct claims *claims, const struct dp_preferred_request *req,
		    const char **out, size_t *count, struct hm_err *e) HM_MUST_USE;

#endif
