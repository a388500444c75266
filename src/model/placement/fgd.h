/* Fragmentation gradient descent: a pod goes to the node, and on it to the card, where the free cards' fragmentation
 * grows least. Fragmentation is measured against the pods that a cluster typically gets (pod_mix.h, mix_table.h).
 *
 *     f = fgd_new(&mix, &weights);  fgd_learn(f, &mix);  placer_set_policy(p, fgd_order(f));
 *
 * Nodes in the same state are measured once. Cards that cannot be shared (not healthy, cordoned, MIG) don't count. */
#ifndef HM_MODEL_PLACEMENT_FGD_H
#define HM_MODEL_PLACEMENT_FGD_H

#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/fit.h"
#include "model/placement/mix_table.h"
#include "model/placement/node_order.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_mix.h"

struct fgd;

/* The weights that docs/placement.md found. */
struct fgd_weights fgd_default_weights(void);

/* `mix` is borrowed and outlives it; it may change between pods. NULL where memory is short. */
struct fgd *fgd_new(const struct pod_mix *mix, const struct fgd_weights *weights);
void fgd_free(struct fgd *f);
HM_DEFINE_AUTO(fgd, fgd_free);

/* Pods that are to be placed are seen (pod_mix_see) by the mix, which is also the one of fgd_new; one that is tried
 * again soon counts once. Whatever policy places them. Without it the mix stays as it was given. */
void fgd_learn(struct fgd *f, struct pod_mix *mix);
/* A pod came, or was found bound by somebody; place_pod does the former. */
void fgd_see(struct fgd *f, const struct pod_ask *ask);
/* A pod that was there when we began (pod_mix_sample). */
void fgd_sample(struct fgd *f, const struct pod_ask *ask);

/* CPU and memory of nodes are not looked at, as where they are not known. */
void fgd_be_blind(struct fgd *f);

/* The policy "fgd", as long as f lives. Where memory is short all nodes and cards rank alike. */
const struct node_order *fgd_order(struct fgd *f);

/* The next calls are for this pod; `ask` lives as long. Nodes may have changed since. place_pod does it. */
void fgd_begin(struct fgd *f, const struct pod_ask *ask);

/* By how much the node's fragmentation grows with the pod where the grant says; smaller is better. */
int fgd_node_cost(struct fgd *f, const struct node_state *n, const struct grant *grant, int64_t *out,
		  struct hm_err *e) HM_MUST_USE;

/* How fragmented the node is now, as fgd_node_cost counts. */
int fgd_node_measure(struct fgd *f, const struct node_state *n, int64_t *out, struct hm_err *e) HM_MUST_USE;

/* Free milli of the card: the least of memory, cores and places, 0 where it cannot be shared, and never all of a card
 * that somebody has. */
uint16_t card_free_milli(const struct node_card *card, const struct card_use *used);

#endif
