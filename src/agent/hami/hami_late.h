/* Late binding under HAMi's resources: from a container that the kubelet's checkpoint names, by its pod in our own
 * watch, to what the scheduler's annotation gives it. Nothing is guessed and nothing waits: what is not known yet is an
 * error that the kubelet tries again after.
 *
 *  - The pod by UID; its annotation must name our node and, as soon as there is a key or a claim that a key was once
 *    there for, be signed. The first signature that is accepted is the pod's for good: a later one is refused.
 *  - The annotation decides the card; the kubelet's ids are counters. Where they name other cards it is counted.
 *  - A container that was started before keeps what it had, also while the API server is away.
 *  - Where the checkpoint cannot be read the kubelet's list of pods counts, unless an init container, which is on no
 *    list, may be meant as well and would get something else.
 *  - A pod that is refused for good is told so: bind-phase failed and an event. */
#ifndef HM_AGENT_HAMI_HAMI_LATE_H
#define HM_AGENT_HAMI_HAMI_LATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/checkpoint_cache.h"
#include "agent/claims/claims.h"
#include "agent/claims/prestart.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/pod_lookup.h"
#include "agent/cluster/pods.h"
#include "agent/hami/pod_finish.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "hami/signature.h"
#include "kubelet/device_plugin.h"
#include "model/claim_text.h"
#include "model/inventory.h"

/* All borrowed. */
struct hami_late_config {
	const char *node, *resource;
	const struct pods *pods;
	const struct claims *claims;
	struct checkpoint_cache *checkpoint;
	struct pod_finish *finish;
	struct pod_lookup *lookup;   /* for when the checkpoint cannot be read; NULL: then it is waited for */
	struct cluster *cluster;     /* for events; may be NULL */
	struct signature_keys *keys; /* NULL: none are configured */
	bool signature_warn;         /* what is not signed is counted and taken */
	bool oversubscribe;          /* memory scaling above 1 */
	bool compat;                 /* the pod's own CUDA_DISABLE_CONTROL and policy count, as in HAMi */
	enum claim_policy policy;    /* of the node's configuration: a pod may only ask for a stricter one */
};

/* Why a start was refused, for metrics. */
enum hami_refusal {
	HAMI_UNKNOWN_POD,     /* not now: our watch has not told it */
	HAMI_UNKNOWN_CARD,    /* not now: this node does not have the annotation's card */
	HAMI_NOT_PLACED,      /* no annotation of HAMi's scheduler, or one for another node */
	HAMI_BAD_POD,         /* its spec cannot be read */
	HAMI_BAD_ANNOTATION,  /* cannot be read, fits the containers in no way, or no amount that may be */
	HAMI_NOT_SIGNED,      /* no signature, or none of ours */
	HAMI_OTHER_SIGNATURE, /* than the one that was accepted first */
	HAMI_REFUSALS
};
const char *hami_refusal_name(enum hami_refusal why); /* "unknown-pod" */

struct hami_late_stats {
	uint64_t starts;               /* first ones, from the annotation */
	uint64_t restarts;             /* from the claim */
	uint64_t mismatches;           /* first starts whose kubelet ids name other cards than the annotation */
	uint64_t unsigned_ok;          /* taken with a warning only (signature_warn) */
	uint64_t disable_control;      /* first starts of containers that ask for CUDA_DISABLE_CONTROL */
	uint64_t steered, not_steered; /* GetPreferredAllocation calls for which a pod was known, or not */
	uint64_t refused[HAMI_REFUSALS];
};

struct hami_late;
struct mig_manager;

int hami_late_new(const struct hami_late_config *config, struct hami_late **out, struct hm_err *e) HM_MUST_USE;
void hami_late_free(struct hami_late *h);
HM_DEFINE_AUTO(hami_late, hami_late_free);

/* Operating mode mig: cards are MIG devices of the manager's. Borrowed. */
void hami_late_set_mig(struct hami_late *h, struct mig_manager *mig);
bool hami_late_is_mig(const struct hami_late *h);

/* What the pod's annotations say may be acted upon before a container of it starts: its cards were chosen on this node,
 * and are signed where that is asked for. */
bool hami_late_trusts(const struct hami_late *h, const struct pod_view *v);

/* offer.h's start, started and prefer. -HM_EAGAIN where trying again soon may help, -HM_EINVAL where it is refused for
 * good. */
int hami_late_start(struct hami_late *h, const struct prestart_target *target, const char *const *ids, size_t count,
		    const struct claim *old, const struct inventory *cards, struct claim *out,
		    struct hm_err *e) HM_MUST_USE;
void hami_late_started(struct hami_late *h, const struct claim *c);
/* The ids of the scheduler's cards for the pod that is most likely asking: bound here, allocating, without an
 * allocation of this size in the kubelet's checkpoint; of several the one bound first. Always size ids, as far as there
 * are so many. */
int hami_late_prefer(struct hami_late *h, const struct dp_preferred_request *req, const char **out, size_t *count,
		     struct hm_err *e) HM_MUST_USE;

void hami_late_stats(const struct hami_late *h, struct hami_late_stats *out);

#endif
