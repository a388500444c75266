/* Which entry of a pod's device text is which container's, and what it amounts to. Exact or refused, never a guess: by
 * hami/entry_order.h, for all containers of the pod (a text of HAMi v2.8, which has none for init containers, is
 * refused where one of those asks for a device), and an entry with another number of devices than its container asks
 * for is refused. Pure. */
#ifndef HM_AGENT_CLUSTER_ENTRY_MAP_H
#define HM_AGENT_CLUSTER_ENTRY_MAP_H

#include <stddef.h>

#include "agent/cluster/pod_view.h"
#include "core/err.h"
#include "hami/devices_text.h"
#include "model/claim_text.h"

/* The entry of this container. -HM_EINVAL says which counts do not fit, -HM_ENOTFOUND that the pod has no such
 * container, -HM_ENOMEM. */
int entry_map_find(const struct pod_view *pod, const struct pod_devices *devices, const char *container, size_t *entry,
		   struct hm_err *e) HM_MUST_USE;

/* The entry's shares as cards, at most HM_MAX_CARDS: bytes of the MiB, percent as they stand; 0 percent is no limit and
 * becomes 100, as does more than 100 (scaled cores). A card that stands twice has the sum of both. -HM_EINVAL for what
 * is never right: no memory, a negative number, more than a container can count, a type that is not NVIDIA's. */
int entry_map_cards(const struct pod_devices *devices, size_t entry, struct claim_card out[HM_MAX_CARDS], size_t *count,
		    struct hm_err *e) HM_MUST_USE;

/* The pod's annotation read for this container: the claim's cards and entry. All of the above, devices_text_parse's
 * errors. */
int entry_map_claim(const struct pod_view *pod, const char *container, struct claim *out, struct hm_err *e) HM_MUST_USE;

#endif
