/* What a pod of the watch holds of its node's cards, and whether that can be believed.
 *
 * A pod holds only where it is bound to the node that its annotations name. Those were written by the scheduler's own
 * Binding; but whoever may create pods may write the same on a pod that is born bound. So where there are keys the text
 * must be signed, for this UID and node, or else the pod is counted as unreadable: as the most that its requests let it
 * hold on any card there. The same for a text that cannot be read, and for a pod whose containers have run although
 * nothing says which cards they have: somebody took that off. Of MIG records that cannot be read only the cards are
 * known, and they are blocked. A pod that asks for nothing holds nothing, whatever its annotations say: no agent gives
 * it anything. Pure but for the keys. */
#ifndef HM_SCHED_VIEW_POD_HOLD_H
#define HM_SCHED_VIEW_POD_HOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "hami/devices_text.h"
#include "hami/mig_text.h"
#include "hami/signature.h"
#include "model/placement/holding.h"
#include "sched/view/pod_read.h"

struct pod_trust {
	const struct signature_keys *keys; /* NULL: none are configured, every text is believed */
	bool warn;  /* while moving to signatures: a text without one is believed, and `doubt` says so once there are
		       keys */
	bool later; /* signatures are read and not checked: `check` says what is to be believed at last */
};

#define POD_NOT_SIGNED "its placement is not signed by us"

struct pod_hold {
	struct hold hold;    /* for cluster_hold; borrows from the tree and from what follows */
	bool holds;          /* false: nothing, and `hold` says nothing */
	struct hm_err doubt; /* code 0: none; else what is not believed or cannot be read */
	/* owned: */
	struct pod_ask ask;
	struct pod_devices devices;
	struct mig_allocations mig;
	struct hold_share *shares;
	size_t share_cap;
	struct str labels;
	struct signature_check check; /* key NULL: nothing is to be checked any more */
	struct str checked;           /* its text */
};

/* *out is freed with pod_hold_fini, on failure too. -HM_ENOMEM, and -HM_EPROTO for what is no pod; all else that is
 * wrong becomes `doubt`. */
int pod_hold_read(const struct cJSON *pod, const struct pod_rules *rules, const struct pod_trust *trust,
		  struct pod_hold *out, struct hm_err *e) HM_MUST_USE;
/* What it says is not counted, but the most that it asks for: where cluster_hold does not take it, either. */
void pod_hold_doubt(struct pod_hold *h, const struct hm_err *why);
void pod_hold_fini(struct pod_hold *h);
static inline void pod_hold_auto_fini(struct pod_hold *h)
{
	pod_hold_fini(h);
}
/* A local: hm_auto_pod_hold h = { 0 }; */
#define hm_auto_pod_hold __attribute__((cleanup(pod_hold_auto_fini))) struct pod_hold

/* Succeeded or Failed: it holds nothing, and the API server's watch may leave it out. */
bool pod_has_ended(const struct cJSON *pod);
/* One of its containers runs, or has run. */
bool pod_runs(const struct cJSON *pod);
/* It is bound to the node that its annotations name. */
bool pod_is_told(const struct cJSON *pod);
/* It has a deletionTimestamp: it holds until it is gone. */
bool pod_is_terminating(const struct cJSON *pod);

#endif
