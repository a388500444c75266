/* Claims that were lost with our store, made again for containers that run: who holds what by the kubelet's checkpoint,
 * their pods by the watch. */
#ifndef HM_AGENT_HAMI_HAMI_REBUILD_H
#define HM_AGENT_HAMI_HAMI_REBUILD_H

#include "agent/claims/checkpoint_cache.h"
#include "agent/claims/claims.h"
#include "agent/cluster/pods.h"
#include "agent/hami/hami_late.h"
#include "core/err.h"
#include "model/inventory.h"

/* All borrowed. */
struct hami_rebuild_config {
	const char *alloc_dir; /* as prestart_facts' */
	struct hami_late *late;
	struct claims *claims;
	const struct pods *pods;
	struct checkpoint_cache *checkpoint;
};

/* Returns how many; -HM_EAGAIN while pods or checkpoint are not known. */
int hami_rebuild(const struct hami_rebuild_config *r, const struct inventory *cards, struct hm_err *e) HM_MUST_USE;

#endif
