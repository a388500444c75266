/* GetPreferredAllocation under HAMi's scheduler: which pod is asking, as far as can be told, and which of the kubelet's
 * ids lie on the cards that the scheduler chose for it. A help, not a promise: identical pods bound at once cannot be
 * told apart here, and PreStart goes by the annotation whatever was picked. Pure. */
#ifndef HM_AGENT_HAMI_HAMI_STEER_H
#define HM_AGENT_HAMI_HAMI_STEER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/claims/claims.h"
#include "agent/cluster/pods.h"
#include "hami/devices_text.h"
#include "kubelet/checkpoint.h"
#include "kubelet/device_plugin.h"

/* The first container, in order of binding and of the spec, that asks for `size` devices of a pod that is allocating
 * and is not in the checkpoint (NULL: not known, nobody is). False where there is none. *devices needs
 * pod_devices_fini on success. */
bool hami_steer_find(const struct pods *pods, const struct checkpoint *checkpoint, int64_t size,
		     struct pod_devices *devices, size_t *entry);

/* Writes req->size of the request's own strings (fewer only where it names fewer): what must be, then ids of the
 * entry's cards (devices NULL: none), those first that no live claim has, then others. Returns how many. */
size_t hami_steer_pick(const struct pod_devices *devices, size_t entry, const struct claims *claims,
		       const struct dp_preferred_request *req, const char **out);

#endif
