/* The cards this node offers: what the last scan saw, and cards that were there before and are lost. A lost card keeps
 * its slots, unhealthy, so that the kubelet's ids keep their meaning until it comes back. A snapshot: never changed. */
#ifndef HM_AGENT_CARDS_FLEET_H
#define HM_AGENT_CARDS_FLEET_H

#include <stdbool.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kubelet/device_plugin.h"
#include "model/inventory.h"

struct card_health;
struct fleet;

/* `before` may be NULL; `scanned` NULL: no card answers any more. */
int fleet_new(const struct fleet *before, const struct inventory *scanned, struct fleet **out,
	      struct hm_err *e) HM_MUST_USE;
/* The same cards; those that `health` calls sick are unhealthy (NULL: none is). */
int fleet_judge(const struct fleet *f, const struct card_health *health, struct fleet **out,
		struct hm_err *e) HM_MUST_USE;
void fleet_free(struct fleet *f);
HM_DEFINE_AUTO(fleet, fleet_free);

const struct inventory *fleet_inventory(const struct fleet *f);
bool fleet_is_healthy(const struct fleet *f, const struct card *card); /* a card of fleet_inventory */
bool fleet_equal(const struct fleet *a, const struct fleet *b);

/* Devices as the kubelet sees them, filled by an offer; the ids are owned by the list. */
struct fleet_devices {
	struct dp_device *items;
	size_t count;
	char (*ids)[HM_DEVICE_ID_BYTES];
};
/* Empty, with room for so many. */
int fleet_devices_init(size_t room, struct fleet_devices *out, struct hm_err *e) HM_MUST_USE;
void fleet_devices_fini(struct fleet_devices *d);

#endif
