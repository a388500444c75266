/* Operating mode mig: which instances the pods of this node hold, as the scheduler reserved them in
 * hami.io/vgpu-mig-allocations. A hold begins when its pod is seen bound here and is over when the pod is terminal or
 * gone; a pod that is only being deleted holds on, its containers may still run. Pure but for memory. */
#ifndef HM_AGENT_HAMI_MIG_HOLDS_H
#define HM_AGENT_HAMI_MIG_HOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cluster/pod_view.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/inventory.h"

struct mig_hold {
	char pod_uid[POD_UID_BYTES], name_space[POD_LABEL_BYTES], pod[KUBE_NAME_BYTES];
	uint32_t container, device; /* the record's key within the pod */
	char gpu_uuid[HM_UUID_BYTES], profile[MIG_NAME_BYTES];
	struct mig_placement at;
	bool over;              /* the pod does not hold it any more: to be ended, then forgotten */
	bool ended;             /* over, and the kubelet said before that its containers have ended */
	bool ready;             /* `made` is there */
	bool bad;               /* it can never be made; `trouble` says why */
	struct mig_device made; /* not ready: what the pod's annotation says, if its uuid is not "" */
	bool told;              /* the annotation says what was made */
	char trouble[256];      /* of the last try; "": none */
	uint64_t not_before_ms; /* of the next try */
	uint32_t tries;
};

struct mig_holds;

struct mig_holds *mig_holds_new(void); /* NULL where memory is short */
void mig_holds_free(struct mig_holds *h);
HM_DEFINE_AUTO(mig_holds, mig_holds_free);

/* What this pod, bound here, says now. A text that cannot be read holds the cards that its device text names, or every
 * card: mig_holds_blind. -HM_ENOMEM: nothing of it was taken; trouble elsewhere is no error. */
int mig_holds_take(struct mig_holds *h, const struct pod_view *v, struct hm_err *e) HM_MUST_USE;
/* The pod is gone; `v` is what was last known of it. */
void mig_holds_gone(struct mig_holds *h, const struct pod_view *v);

size_t mig_holds_count(const struct mig_holds *h);
struct mig_hold *mig_holds_at(struct mig_holds *h, size_t i);
void mig_holds_remove(struct mig_holds *h, size_t i); /* the last one moves to its place */
/* NULL where there is none; one that is over only where there is no other of this key. */
struct mig_hold *mig_holds_find(struct mig_holds *h, const char *pod_uid, uint32_t container, uint32_t device);

/* Ready ones whose device is not on its card any more, as after a reset or with a new driver: to be made again. */
void mig_holds_check(struct mig_holds *h, const struct inventory *inv);
/* Which device the hold has had, where it is not known: the one that stands at its place, if any does. */
void mig_hold_find_made(struct mig_hold *h, const struct inventory *inv);

/* Another hold of this place or a part of it is ready, or over while its containers may run: what stands there is not
 * this one's. */
bool mig_holds_rival(const struct mig_holds *h, const struct mig_hold *hold);

/* A hold that has ended, and another of just this place and profile: what stands there becomes that one's. */
bool mig_holds_passes_on(const struct mig_holds *h, const struct mig_hold *ended);
/* Have the pod's containers ended, as far as it is known here? */
bool mig_holds_ended(const struct mig_holds *h, const char *pod_uid);

/* Does a pod hold something there, or may one whose text cannot be read: nobody may end it. */
bool mig_holds_place(const struct mig_holds *h, const char *gpu_uuid, struct mig_placement at);
/* A pod holds of this card, or may. */
bool mig_holds_card(const struct mig_holds *h, const char *gpu_uuid);
/* The card may be held by a pod whose text cannot be read. */
bool mig_holds_blind(const struct mig_holds *h, const char *gpu_uuid);

#endif
