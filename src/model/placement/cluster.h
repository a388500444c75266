/* All nodes, who holds what of their cards, and the quotas of their namespaces: what placement looks at, held in memory
 * and changed by each event, never rebuilt. It knows no Kubernetes: whoever watches nodes and pods tells it.
 *
 * A pod's way: place_pod (place.h) chooses; cluster_reserve promises; cluster_confirm before the Binding is sent, so
 * that no time takes the promise back while nobody knows how that ends; cluster_bound when it went well,
 * cluster_roll_back when it is certain that it did not. What the watch says of bound pods is told by cluster_hold,
 * again and again as may be; cluster_release when a pod is gone or has ended. After a restart the same calls make the
 * same state, in any order: holdings wait for their nodes and cards. */
#ifndef HM_MODEL_PLACEMENT_CLUSTER_H
#define HM_MODEL_PLACEMENT_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/texts.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/budgets.h"
#include "model/placement/fit.h"
#include "model/placement/holding.h"
#include "model/placement/node_state.h"
#include "model/placement/quota.h"

struct cluster;

/* NULL where memory is short. memory_factor: of quotas (quota.h). */
struct cluster *cluster_new(uint64_t memory_factor);
void cluster_free(struct cluster *c);
HM_DEFINE_AUTO(cluster, cluster_free);

/* For node_state_new; the types of all cards, each once. */
struct texts *cluster_texts(struct cluster *c);
/* For quotas_set, quotas_remove and what is asked of quotas; namespaces' books are ours. */
struct quotas *cluster_quotas(struct cluster *c);
struct budgets *cluster_budgets(struct cluster *c);

/* ---- nodes */

/* The node's cards, CPU and memory as they are now, new or changed; nothing of them is taken yet. -HM_ENOMEM leaves the
 * node as it was; take_node is freed then, too. */
int cluster_put_node(struct cluster *c, struct node_state *take_node, struct hm_err *e) HM_MUST_USE;
/* Its holdings stay, and count again when it comes back. */
void cluster_remove_node(struct cluster *c, const char *name);
/* hami.io/device-cordon as it is now. */
void cluster_cordon_node(struct cluster *c, const char *name, const char *text);
const struct node_state *cluster_node(const struct cluster *c, const char *name); /* NULL where it is not there */

/* ---- CPU and memory of nodes: nobody is refused for them here (kube-scheduler has seen to that), but policies look at
 * what is left */

/* All that the node has for pods; -1: not known. */
void cluster_set_host(struct cluster *c, const char *name, struct host_amount all);

/* The pod, with cards or without, is bound to the node and has so much of it, whatever it had before, until
 * cluster_release. -HM_ENOMEM changes nothing. */
int cluster_take_host(struct cluster *c, const char *uid, const char *node, struct host_amount has,
		      struct hm_err *e) HM_MUST_USE;

/* ---- holdings */

/* The pod holds this now, whatever it held before. -HM_EINVAL
 * (holding.h; the caller then holds it as unreadable); -HM_EEXIST for HOLD_RESERVED where the pod is bound or being
 * bound; -HM_ENOMEM. Errors change nothing. */
int cluster_hold(struct cluster *c, const struct hold *h, struct hm_err *e) HM_MUST_USE;

/* Of a pod that is told as bound: whether it is being deleted, and its labels (struct hold) as they are now. What it
 * holds stays as it is. Harmless where it holds nothing. -HM_ENOMEM changes nothing. */
int cluster_amend(struct cluster *c, const char *uid, bool terminating, const char *labels,
		  struct hm_err *e) HM_MUST_USE;

/* HOLD_RESERVED for what fit_pod granted on that node, and the CPU and memory that the pod asks for; later,
 * cluster_find gives it for the Binding's texts. After -HM_ENOMEM nothing is reserved. */
int cluster_reserve(struct cluster *c, const struct pod_ask *ask, const char *node, const struct grant *grant,
		    uint64_t expires_ms, struct hm_err *e) HM_MUST_USE;

/* 0: the pod may be placed; what is reserved for it goes first. -HM_EEXIST: it is bound or being bound. */
int cluster_may_place(const struct cluster *c, const char *uid, struct hm_err *e) HM_MUST_USE;

/* HOLD_RESERVED becomes HOLD_BINDING. -HM_ENOTFOUND: nothing is reserved (any more) on that node for the pod;
 * -HM_EEXIST: it is bound or being bound. */
int cluster_confirm(struct cluster *c, const char *uid, const char *node, struct hm_err *e) HM_MUST_USE;
void cluster_bound(struct cluster *c, const char *uid);
/* What was promised is free; what the watch said is bound stays. */
void cluster_roll_back(struct cluster *c, const char *uid);

/* The watch has the pod, and bound: by us as far as we know it, else by somebody else, and what was reserved for it is
 * free. What it holds is another matter. */
void cluster_seen(struct cluster *c, const char *uid);

/* The pod has nothing any more, of cards or host; harmless where it had nothing. */
void cluster_release(struct cluster *c, const char *uid);

/* Around a list of all pods, each of which is told by cluster_hold or cluster_seen, now or before: what
 * cluster_bound said before the list began and nobody has told of since was gone before the list. It is released; how
 * many. A list that breaks off begins again. */
void cluster_list_begins(struct cluster *c);
size_t cluster_list_ended(struct cluster *c);

/* Takes back reservations whose time has come; how many. */
size_t cluster_expire(struct cluster *c, uint64_t now_ms);
uint64_t cluster_next_expiry_ms(const struct cluster *c); /* UINT64_MAX: none */

/* ---- looking */

const struct holding *cluster_find(const struct cluster *c, const char *uid); /* NULL where it holds nothing */
const char *cluster_holding_node(const struct holding *h);
const char *cluster_holding_space(const struct holding *h);
/* It names a node or a card that is not there. */
bool cluster_holding_waits(const struct holding *h);
/* Of h->share_count; its texts are good until the next change. */
struct hold_share cluster_holding_share(const struct holding *h, size_t i);

/* Start with at = 0; false at the end; no changes meanwhile. */
bool cluster_next_node(const struct cluster *c, size_t *at, const struct node_state **out);
bool cluster_next_holding(const struct cluster *c, size_t *at, const struct holding **out);
/* Nodes and who holds something of each; those that are not there, too, while somebody does. */
bool cluster_next_book(const struct cluster *c, size_t *at, const struct node_book **out);
const struct node_book *cluster_book(const struct cluster *c, const char *node); /* NULL: there is none */
size_t cluster_holding_count(const struct cluster *c);

/* ---- what if a pod were not there: its share of cards and quota does not count until it is put down. Nothing else may
 * change meanwhile. */
void cluster_lift(struct cluster *c, const struct holding *h);
void cluster_put_down(struct cluster *c, const struct holding *h);

/* The most that there was at any time, as a node that is away for a while comes back; the least of now, for a card that
 * can be cut its largest instance. All 0 without cards. */
struct cluster_extremes {
	int32_t least_memory_mib, most_memory_mib, most_cores; /* of a card */
	size_t most_cards;                                     /* of a node */
	bool any_mig; /* of a card that can be cut a pod may have several instances */
};
struct cluster_extremes cluster_extremes(struct cluster *c);

#endif
