/* A Node's JSON as placement knows it: the cards that its agent registered, where they may be used now.
 *
 * A node has cards where its agent's register text can be read and the kubelet still offers the resource: allocatable
 * falls to 0 when the plugin is gone, and stays there until one is back. That and nothing else is the node's health;
 * the handshake says nothing about it since HAMi v2.8, where no plugin answers it. A register text that is gone, empty
 * or broken takes the cards away: what cannot be read is no reason to sell what was there before. Pods that are there
 * go on holding (cluster.h). Pure. */
#ifndef HM_SCHED_VIEW_NODE_READ_H
#define HM_SCHED_VIEW_NODE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/texts.h"
#include "core/err.h"
#include "io/json.h"
#include "model/placement/node_state.h"

struct node_rules {
	const char *count;    /* the resource that the kubelet offers */
	const char *selector; /* --node-label-selector, "k=v,k2=v2": others have no cards; NULL or "": all */
};

/* -HM_EINVAL: the selector is not of that form. */
int node_selector_check(const char *selector, struct hm_err *e) HM_MUST_USE;

/* *out is the node with its cards, cordoned ones marked, and its allocatable CPU and memory. -HM_ENOTFOUND: it has
 * none, the message says why (not registered, not offered, not selected); -HM_EPROTO, -HM_EINVAL, -HM_ELIMIT: its texts
 * are broken; -HM_ENOMEM. */
int node_read(const struct cJSON *node, const struct node_rules *rules, struct texts *texts, struct node_state **out,
	      struct hm_err *e) HM_MUST_USE;

/* A number of all that node_read takes from the object but the cordon, CPU and memory: another one, other cards. For
 * most changes of a Node (its conditions) it stays. */
uint64_t node_read_print(const struct cJSON *node, const struct node_rules *rules);

#endif
