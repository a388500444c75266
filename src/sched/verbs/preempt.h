/* /preempt: which pods would have to go so that a pod of higher priority gets its cards. Answered from memory in the
 * same turn of the loop; nothing is reserved or evicted: kube-scheduler evicts, and asks /filter again. */
#ifndef HM_SCHED_VERBS_PREEMPT_H
#define HM_SCHED_VERBS_PREEMPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/cluster.h"
#include "sched/view/pod_read.h"

struct preempt_config {
	struct cluster *cluster;
	const char *card_policy; /* for pods without a wish */
	struct pod_rules pods;
	/* NULL: the call goes on; else why it cannot (not synced, not the leader). NULL: always. */
	const char *(*barred)(void *arg);
	void *arg;
};

struct preempt_verb;

int preempt_verb_new(const struct preempt_config *config, struct preempt_verb **out, struct hm_err *e) HM_MUST_USE;
void preempt_verb_free(struct preempt_verb *p);
HM_DEFINE_AUTO(preempt_verb, preempt_verb_free);

/* Appends the answer; its HTTP status: the result has no field for errors, so 400 and 503 with a text say them, and
 * kube-scheduler tries the pod again. */
int preempt_answer(struct preempt_verb *p, const char *body, size_t n, struct str *out);

#endif
