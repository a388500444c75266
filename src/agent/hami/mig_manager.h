/* Operating mode mig: makes the instances that the scheduler reserved, and ends them. The process has one, which lives
 * as long as it does: what an instance's number means changes, and two tables would end each other's.
 *
 *  1. Start: others are kept off the cards (agent/cards/card_pause.h). When cards and pods are known, each of our cards
 *     that no pod holds and no process is on gets MIG mode and is cleared; the others stay as they are. Then
 *     publishing begins. A card that is without MIG mode later (it was busy, came late, was reset) is prepared when
 *     nobody is on it; one that pods hold, when its instances are made again.
 *  2. A pod is seen bound here: its instances are made in the background, by the worker. A container's start waits for
 *     it by the kubelet's trying again; no call of the kubelet's ever makes one.
 *  3. What was made is written into the pod (agent/hami/mig_tell.h).
 *  4. After a restart every record is made sure of by itself: what stands there is its, what lacks is made.
 *  5. A hold that is over (its pod terminal or gone) is ended once no claim has its device any more, that is when its
 *     container does not run; if a process is on it all the same, later. What nobody holds is ended as well, but on a
 *     card of a pod whose record cannot be read nothing is. */
#ifndef HM_AGENT_HAMI_MIG_MANAGER_H
#define HM_AGENT_HAMI_MIG_MANAGER_H

#include <stdint.h>

#include "agent/cards/card_pause.h"
#include "agent/cards/driver.h"
#include "agent/cards/fleet.h"
#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/pods.h"
#include "agent/options/options.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"

enum {
	MIG_LOOK_MS = 1000, /* for holds that are over */
	MIG_ORPHANS_MS = 5000,
	MIG_PREPARE_AGAIN_MS = 60000,
	MIG_RETRY_MS = 500, /* of an instance that could not be made or ended; doubled up to */
	MIG_RETRY_MAX_MS = 10000,
};

/* All borrowed. */
struct mig_manager_config {
	const struct agent_options *options;
	struct worker *worker;
	struct driver *driver;
	struct pods *pods;
	const struct claims *claims;
	struct cluster *cluster;
	struct card_pause *pause;
	const struct hami_late *late; /* says which pods' annotations are to be believed */
};

struct hami_late;
struct mig_manager;

int mig_manager_new(struct loop *l, const struct mig_manager_config *config, struct mig_manager **out,
		    struct hm_err *e) HM_MUST_USE;
/* After worker_free, before pods and pause. */
void mig_manager_free(struct mig_manager *m);
HM_DEFINE_AUTO(mig_manager, mig_manager_free);

/* The cards are these now; borrowed until the next call. */
void mig_manager_take(struct mig_manager *m, const struct fleet *f);

/* The MIG devices of entry `entry` of the pod's device text, `count` of them, as the claim's cards. -HM_EAGAIN: not
 * made yet; -HM_EINVAL: never, in HAMi's words. */
int mig_manager_fill(struct mig_manager *m, const struct pod_view *v, const char *container, uint32_t entry,
		     size_t count, struct claim *out, struct hm_err *e) HM_MUST_USE;

struct mig_manager_stats {
	size_t holds, ready_held, over; /* reservations; ready and not over; over */
	uint64_t made, ended, failures; /* of steps */
	uint64_t patches, conflicts;    /* of pods */
	bool prepared;
};
void mig_manager_stats(const struct mig_manager *m, struct mig_manager_stats *out);

#endif
