/* What the API server says, kept in placement's model: Nodes, Pods, ResourceQuotas and PodDisruptionBudgets listed
 * once, page by page, and watched from then on. Of the objects nothing is kept but what the model needs and a few words
 * a node.
 *
 *     Node            node_read.h; cordoned and uncordoned at once
 *     Pod             host_read.h, with cards or without; pod_hold.h; those that have ended are not even sent to us. A
 *                     pod that is bound holds until it is gone or has ended, whatever becomes of its annotations; the
 *                     same if they are gone when we begin and it runs
 *     ResourceQuota   spec.hard's limits.<memory> and limits.<cores>
 *     PodDisruptionBudget   budget_read.h; nothing but an eviction waits for them, and where they may not be read
 * (403), or are not there (404), there are none
 *
 * Promises (HOLD_RESERVED, HOLD_BINDING) are others' to make and take back; but a pod that is gone holds nothing. */
#ifndef HM_SCHED_VIEW_VIEW_H
#define HM_SCHED_VIEW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "hami/signature.h"
#include "kube/client.h"
#include "kube/event.h"
#include "model/placement/cluster.h"
#include "sched/view/node_read.h"
#include "sched/view/pod_hold.h"

struct view_config {
	struct kube_client *client;
	struct cluster *cluster;
	struct kube_events *events; /* NULL: none are told */
	struct pod_rules pods;
	struct node_rules nodes;
	struct pod_trust trust;
	unsigned page; /* objects; 0: 500 */
	/* Once, from the loop: nodes, pods and quotas are all known. */
	void (*synced)(void *arg);
	/* A pod with cards is told of as bound for the first time, and in no doubt: what it asked for. NULL: nobody
	 * wants to know. */
	void (*bound)(void *arg, const struct pod_ask *ask);
	void *arg;
};

struct view;

/* What the config points to outlives the view. It begins at once. */
int view_new(const struct view_config *config, struct view **out, struct hm_err *e) HM_MUST_USE;
void view_free(struct view *v);
HM_DEFINE_AUTO(view, view_free);

bool view_is_synced(const struct view *v);
/* NULL: what is known is good to place pods by; else why not. Not what leads or writes elsewhere: only this view. */
const char *view_barred(const struct view *v);
/* NULL: all budgets are known, or may not be; else the same of choosing whom to evict. */
const char *view_budgets_barred(const struct view *v);

/* pod_trust's keys are others now: pods that were doubted are looked at once more, soon. */
void view_keys_changed(struct view *v);

/* What is known of a node besides its cards. */
struct view_node {
	const char *name, *uid, *resource_version;
	const char *lock; /* hami.io/mutex.lock; NULL: none */
	const char *why;  /* why it has no cards; "" where it has */
};
/* Borrowed until the loop's next turn; NULL: there is no such node. */
const struct view_node *view_node(const struct view *v, const char *name);

/* Told once what was written to pods before this call is in the model. `mark` is the value of an annotation that the
 * caller has just written to that pod, and had not before; NULL, or a pod that is not told of within a minute: all pods
 * are listed anew. One at a time: a second takes the place of the first. */
struct view_fence {
	const char *name_space, *pod, *key, *mark;
	void (*passed)(void *arg);
	void *arg;
};
int view_wait(struct view *v, const struct view_fence *fence, struct hm_err *e) HM_MUST_USE;

struct view_stats {
	size_t nodes, nodes_with_cards, pods_told;
	uint64_t doubted;  /* pods whose text is not believed, now */
	uint64_t unread;   /* objects that could not be taken, memory was short: all are listed anew until they are */
	uint64_t failures; /* of lists and watches */
	/* Since the API server last said something of them, a bookmark at least: it does so each minute. */
	struct {
		uint64_t nodes, pods, quotas, budgets;
	} silent_ms;
	bool without_budgets; /* they may not be read: that they are silent says nothing */
};
void view_stats(const struct view *v, struct view_stats *out);

#endif
