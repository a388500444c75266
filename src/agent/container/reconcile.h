/* What nobody holds any more goes: claims whose container does not run and that the kubelet's checkpoint does not list,
 * or whose pod left the kubelet's list or is over by our own watch, and specs, folders and files without a claim (the
 * agent was killed half-way). A timer, because no event tells it. Nothing goes where containers cannot be seen
 * (agent/processes/sight.h). */
#ifndef HM_AGENT_CONTAINER_RECONCILE_H
#define HM_AGENT_CONTAINER_RECONCILE_H

#include "agent/claims/claims.h"
#include "agent/claims/counter.h"
#include "agent/claims/pending.h"
#include "agent/cluster/pod_names.h"
#include "agent/cluster/pods.h"
#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum {
	RECONCILE_EVERY_MS = 3000,
	RECONCILE_ORPHANS_EVERY = 20, /* rounds; and the first */
	/* An Allocate's answer is in the checkpoint before its pod is admitted; one that is not there by now never was.
	 */
	RECONCILE_PENDING_MS = 60000,
};

struct reconcile_config {
	const struct agent_paths *paths;
	const char *resource; /* as reconcile_max_number's */
	struct claims *claims;
	struct counter *counter;
	struct worker *worker; /* refills the counter */
	struct pending *pending;
	const struct pod_names *names;
	const struct pods *pods; /* NULL: the API server is not asked for pods */
};

struct reconcile;

/* The first round runs from the loop soon. All of config is borrowed. */
int reconcile_new(struct loop *l, const struct reconcile_config *config, struct reconcile **out,
		  struct hm_err *e) HM_MUST_USE;
void reconcile_free(struct reconcile *r);
HM_DEFINE_AUTO(reconcile, reconcile_free);

/* The largest number that any file or folder of ours, or the checkpoint, carries; 0 if none. For counter_open.
 * `resource` is ours, as the MIG profiles' are; what the kubelet keeps of others' and cannot be read is nobody's. */
uint64_t reconcile_max_number(const struct agent_paths *p, const char *resource);

/* Removes what file_replace of a killed agent left in our folders. Before anything is written. */
void reconcile_remove_temporaries(const struct agent_paths *p);

#endif
