/* Writes into a pod which instances it has: the ids beside the scheduler's reservation in hami.io/vgpu-mig-allocations.
 * The pod is read first and its version is the patch's condition, so that nobody's change is lost; where another one
 * was faster it is read again. Nobody waits for it, and it is tried until it is done or the pod is gone. */
#ifndef HM_AGENT_HAMI_MIG_TELL_H
#define HM_AGENT_HAMI_MIG_TELL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/hami/mig_holds.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "kube/client.h"

enum { MIG_TELL_RETRY_MS = 200, MIG_TELL_RETRY_MAX_MS = 30000 };

struct mig_tell;

/* The holds are borrowed, and read when it is time to write. */
int mig_tell_new(struct kube_client *client, struct mig_holds *holds, struct mig_tell **out,
		 struct hm_err *e) HM_MUST_USE;
void mig_tell_free(struct mig_tell *t);
HM_DEFINE_AUTO(mig_tell, mig_tell_free);

/* What this pod holds is ready. */
void mig_tell_pod(struct mig_tell *t, const struct mig_hold *hold);

struct mig_tell_stats {
	uint64_t patches, conflicts, retries;
	size_t waiting;
};
void mig_tell_stats(const struct mig_tell *t, struct mig_tell_stats *out);

#endif
