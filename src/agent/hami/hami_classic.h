/* Classic binding under HAMi's scheduler: everything is in the Allocate answer, so the pod has to be known there. It is
 * told from what we know without asking anybody (agent/hami/pod_guess.h), and made sure of at PreStart, when the
 * kubelet's checkpoint says who got which answer:
 *
 *  - the answer was for this container: it starts;
 *  - it was for another one, and its cards are the same: the limits are in the limit file, which is written anew, so
 *    that the container gets what the scheduler gave it;
 *  - its cards are others: the answer names them and cannot be taken back. The start is refused, and says so.
 *
 * What cannot be known at Allocate: two pods that ask for the same number of devices, both bound and neither answered,
 * without a lock that names one of them, and the kubelet admits them in another order than they were bound in. */
#ifndef HM_AGENT_HAMI_HAMI_CLASSIC_H
#define HM_AGENT_HAMI_HAMI_CLASSIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/checkpoint_cache.h"
#include "agent/claims/claims.h"
#include "agent/claims/prestart.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/node_object.h"
#include "agent/cluster/pods.h"
#include "agent/hami/hami_late.h"
#include "agent/hami/pod_finish.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "model/claim_text.h"
#include "model/inventory.h"

enum {
	/* For a pod that the kubelet knows and our watch does not yet. It blocks the kubelet's whole sync loop. */
	HAMI_CLASSIC_WAIT_MS = 2000,
	/* For one that only the lock names; then the others are looked at. */
	HAMI_CLASSIC_LOCK_WAIT_MS = 1000,
	/* The containers of one pod are asked for one behind the other. */
	HAMI_CLASSIC_SAME_POD_MS = 1000,
	/* Behind an answer, for the kubelet to write it down; doubled each time, for so many times: 5 s. */
	HAMI_CLASSIC_LOOK_MS = 20,
	HAMI_CLASSIC_LOOKS = 8,
	/* Containers of one call. No kubelet asks for more than one. */
	HAMI_CLASSIC_CALL_MAX = 64,
};

/* All borrowed. */
struct hami_classic_config {
	struct loop *loop;
	const char *node, *resource, *alloc_dir;
	const struct pods *pods;
	const struct claims *claims;
	struct checkpoint_cache *checkpoint;
	const struct node_object *node_object;
	struct hami_late *late; /* from a pod's container to what it holds */
	struct pod_finish *finish;
	struct cluster *cluster;
};

struct hami_classic;

int hami_classic_new(const struct hami_classic_config *config, struct hami_classic **out, struct hm_err *e) HM_MUST_USE;
void hami_classic_free(struct hami_classic *h);
HM_DEFINE_AUTO(hami_classic, hami_classic_free);

/* offer.h's call, claim, answered and start. -HM_EAGAIN where the pod is not known yet; any other error has told the
 * pod. A container that is asked for again keeps its number. */
void hami_classic_call(struct hami_classic *h);
int hami_classic_claim(struct hami_classic *h, const char *const *ids, size_t count, uint64_t number,
		       const struct inventory *cards, struct claim *out, struct hm_err *e) HM_MUST_USE;
void hami_classic_answered(struct hami_classic *h, const struct claim *c, bool ok);
int hami_classic_start(struct hami_classic *h, const struct prestart_target *target, const char *const *ids,
		       size_t count, const struct claim *old, const struct inventory *cards, struct claim *out,
		       struct hm_err *e) HM_MUST_USE;

struct hami_classic_stats {
	uint64_t answers;
	uint64_t by_lock;     /* of those: the lock named the pod */
	uint64_t by_order;    /* others were as likely, and had not been bound first */
	uint64_t again;       /* asked again, and got their own */
	uint64_t moved;       /* starts that found another's answer, with the same cards: put right */
	uint64_t misplaced;   /* starts refused: another's answer, with other cards */
	uint64_t own_visible; /* containers whose own NVIDIA_VISIBLE_DEVICES won */
};
void hami_classic_stats(const struct hami_classic *h, struct hami_classic_stats *out);

#endif
