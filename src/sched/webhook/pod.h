/* A pod's way through admission, step by step in HAMi's order. */
#ifndef HM_SCHED_WEBHOOK_POD_H
#define HM_SCHED_WEBHOOK_POD_H

#include "core/err.h"
#include "sched/webhook/review.h"
#include "sched/webhook/webhook.h"

/* Creation. 0, whether allowed or not; -HM_ENOMEM. */
int pod_admit(const struct webhook_rules *rules, const struct review *r, struct answer *answer,
	      struct hm_err *e) HM_MUST_USE;

/* Any change later, and what comes through a subresource: nothing is patched. */
void pod_change(const struct webhook_rules *rules, const struct review *r, struct answer *answer);

#endif
