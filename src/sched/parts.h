/* What is known of the cluster, and what decides by it: made in order, tied together, taken down in order. The server's
 * routes lead here. */
#ifndef HM_SCHED_PARTS_H
#define HM_SCHED_PARTS_H

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kube/client.h"
#include "kube/event.h"
#include "model/placement/cluster.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"
#include "sched/bind/bind.h"
#include "sched/lead/lead.h"
#include "sched/lead/takeover.h"
#include "sched/options/options.h"
#include "sched/serve/server.h"
#include "sched/verbs/admission.h"
#include "sched/verbs/filter.h"
#include "sched/verbs/preempt.h"
#include "sched/verbs/sampled.h"
#include "sched/view/view.h"

struct parts {
	struct loop *loop;
	const struct sched_options *options;
	struct kube_client *client;
	struct kube_events *events;
	struct cluster *cluster;
	struct pod_mix mix;
	struct fgd *fgd;
	struct placer *placer;
	struct view *view;
	struct signature_keys *keys; /* NULL: nothing is signed */
	uint64_t keys_version;       /* that the view knows */
	struct binder *binder;
	struct kube_client *lead_client; /* NULL: we always lead */
	struct lead *lead;
	struct takeover *takeover;
	void (*released)(void *arg);
	void *released_arg;
	struct filter *filter;
	struct preempt_verb *preempt;
	struct admission *admission;
	struct loop_timer *expire; /* promises that nobody kept */
	uint64_t cut_told_ms;      /* when the log said that candidates are left out; 0: never */
	struct sampled_watch sampled;
};

/* On failure fini is due, too. `p` must not move. */
int parts_init(struct parts *p, struct loop *l, const struct sched_options *o, struct hm_err *e) HM_MUST_USE;
void parts_fini(struct parts *p);

/* NULL: pods can be placed; else why they cannot now. */
const char *parts_barred(const struct parts *p);

/* Nothing is decided any more. When none of our Bindings is on its way, the Lease is left to the next: done when the
 * API server knows, or does not answer. Where done does not come in time the Lease is to lapse: the next one waits. */
void parts_release(struct parts *p, void (*done)(void *arg), void *arg);

/* For a server_route; arg is the parts. */
void parts_answer_filter(void *arg, struct server_request *r);
void parts_answer_preempt(void *arg, struct server_request *r);
void parts_answer_bind(void *arg, struct server_request *r);

#endif
