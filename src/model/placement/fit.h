/* Does a pod fit on a node, and on which of its cards? HAMi's rules in HAMi's order, so that its users see what they
 * know; where those rules go wrong, the right thing.
 *
 *     fitter_read(f, ask, policy, &e)     once for a pod
 *     fitter_set_quota(f, room)
 *     fit_pod(f, node, &grant, &why, &e)  for each node
 *
 * Nothing is reserved. A fitter belongs to one thread; it allocates only while its buffers grow. */
#ifndef HM_MODEL_PLACEMENT_FIT_H
#define HM_MODEL_PLACEMENT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"
#include "model/placement/pod_use.h"
#include "model/placement/quota.h"
#include "model/placement/reasons.h"

/* The cards of each container, in the order chosen; containers in the order of the asks. */
struct grant {
	struct card_share *shares; /* owned */
	size_t count, cap;
};

void grant_fini(struct grant *g);
static inline void grant_auto_fini(struct grant *g)
{
	grant_fini(g);
}
/* A local: hm_auto_grant g = { 0 }; */
#define hm_auto_grant __attribute__((cleanup(grant_auto_fini))) struct grant

/* How bad it would be to give the container this card, of which `used` is taken (by others, and by the pod's own
 * containers so far): the card with the smallest is tried first. */
typedef double card_rank_fn(void *arg, const struct node_state *n, size_t card, const struct card_use *used,
			    const struct card_ask *ask);

struct fitter;

struct fitter *fitter_new(void); /* NULL where memory is short */
void fitter_free(struct fitter *f);
HM_DEFINE_AUTO(fitter, fitter_free);

/* The next fit_pod calls are for this pod, which must live until then; no quota, no rank. card_policy: for pods without
 * a wish. -HM_EINVAL with HAMi's words for weights that cannot be read, and for lists of types that are too long;
 * -HM_ENOMEM. */
int fitter_read(struct fitter *f, const struct pod_ask *ask, const char *card_policy, struct hm_err *e) HM_MUST_USE;
/* What the pod's namespace has left (quotas_room); what the pod itself holds does not count as used. */
void fitter_set_quota(struct fitter *f, struct quota_amount room);
/* Instead of the policy's order (its filters stay). */
void fitter_set_rank(struct fitter *f, card_rank_fn *rank, void *arg);

/* Choosing the best joined cards (topology-aware) may look at so many ways for a pod, of all nodes together, about 10
 * ms; beyond that each next card is the one that adds most. fitter_read begins anew, and so does fitter_refill. */
bool fitter_may_run_short(const struct fitter *f);
bool fitter_ran_short(const struct fitter *f);
void fitter_refill(struct fitter *f);

/* 1: it fits, *out (whose memory is used again) says where. 0: *why says why not. Negative: -HM_ENOMEM. */
int fit_pod(struct fitter *f, const struct node_state *n, struct grant *out, struct refusal *why,
	    struct hm_err *e) HM_MUST_USE;

#endif
