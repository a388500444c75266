/* Which pods would have to go from a node, so that a pod of higher priority fits there. kube-scheduler, which counts no
 * cards, asks for that (PostFilter; docs/decisions/0009-preempt.md). Nothing changes: what pods hold is lifted for a
 * moment and put down again.
 *
 *     preempt_read(p, cluster, pod, ...)     once for a pod
 *     preempt_node(p, node, going, ...)      for each node */
#ifndef HM_MODEL_PLACEMENT_PREEMPT_H
#define HM_MODEL_PLACEMENT_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/cluster.h"

struct preempt;

struct preempt_victim {
	const struct holding *holding;
	bool violates; /* a budget: more go than it allows, the least worthy first */
};

struct preempt *preempt_new(void); /* NULL where memory is short */
void preempt_free(struct preempt *p);
HM_DEFINE_AUTO(preempt, preempt_free);

/* The next calls are for this pod, which must live until then. card_policy: for pods without a wish. Errors as
 * fitter_read's. */
int preempt_read(struct preempt *p, struct cluster *c, const struct pod_ask *ask, const char *card_policy,
		 struct hm_err *e) HM_MUST_USE;

/* 1: the pod fits there once the pods with these UIDs, those that are being deleted anyway and *victims have gone. Only
 * bound pods of lower priority are taken. Spared are first those whose end would violate a budget (budgets.h) if all
 * went, then those of the highest priority, among equal ones those that hold least, as long as the pod still fits: so
 * none of the victims could stay. In order of priority, the highest first; good until the next call or change. 0:
 * nobody's going helps, or nobody need go, or a pod was asked about for too long (about 20 ms in all, and as much for
 * budgets). -HM_ENOMEM. */
int preempt_node(struct preempt *p, const char *node, const char *const *going, size_t going_count,
		 const struct preempt_victim **victims, size_t *count, struct hm_err *e) HM_MUST_USE;

#endif
