/* A pod is bound: one POST of the Binding, which carries the annotations and the signature, so that the pod gets both
 * or neither. Pods of nodes that bind late take nothing else; for other nodes HAMi's lock comes before (lock_take.h).
 *
 *  1. In hand are BIND_IN_FLIGHT at most, the others wait in order; of a node that needs the lock one at a time. A pod
 *     of a group that finds the node locked waits for it out of hand, for lock_retry_ms; others are turned away.
 *  2. The promise of /filter is confirmed: no time takes it back from now on. A pod without one is asked for: where it
 *     asks for no card it is bound without annotations, else it is to be filtered again.
 *  3. The Binding is posted. The API server refuses another pod of that name, by the UID.
 *  4. It said yes: the pod holds. It said no: the promise is rolled back, the lock given back. It said "not now" (401,
 *     429, our own rate): nothing was done, and it is sent again then. It said nothing, or broke off: nobody knows. The
 *     same Binding is posted again: of two that arrive the second is refused, and the pod itself then says which
 *     placement it has. Until that is known the promise stands, however long it takes.
 *  5. Whoever asked hears after BIND_ANSWER_MS at the latest: kube-scheduler waits 30 s. While BIND_IN_DOUBT Bindings
 *     are in doubt of which nobody waits to hear any more, no other is begun.
 *
 * WHO MAY SEND, AND WHEN IT IS OVER. A Binding leaves this process only while we lead: `barred` is asked at each send,
 * never before one. It has half of alone_ms (at most 10 s) to get to the API server, for then we give it up, and as
 * long there, for the server is told so (?timeout=): so it is over before another replica may lead, and before the
 * pod is asked for whose "not bound" is believed. What was answered otherwise than by a yes or no is on its way until
 * then.
 *
 * That holds for what a killed process has sent, too: the next one in its pod leads no sooner (lead/election.h,
 * lead/takeover.h).
 *
 * A replica that does not lead any more (binder_stop) sends nothing new; what it has sent is followed to its end. */
#ifndef HM_SCHED_BIND_BIND_H
#define HM_SCHED_BIND_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "hami/signature.h"
#include "kube/client.h"
#include "kube/event.h"
#include "model/placement/cluster.h"
#include "sched/view/view.h"

enum {
	BIND_IN_FLIGHT = 10,
	BIND_IN_DOUBT = 100,
	BIND_ANSWER_MS = 25000,
	BIND_OVER_MS = 20000, /* a Binding is over so long after it was sent, whatever becomes of us */
};

struct bind_config {
	struct kube_client *client;
	struct cluster *cluster;
	struct view *view;
	struct kube_events *events;  /* NULL: none are told */
	bool tell_success;           /* an event for each pod that was bound: one API call more */
	bool label_pods;             /* HAMi's label hami.io/vgpu-node, after the Binding; one API call more */
	struct signature_keys *keys; /* NULL: nothing is signed; read anew before each use */
	struct pod_rules pods;
	uint64_t lock_timeout_ms, lock_retry_ms; /* retry 0: no pod waits for a lock */
	/* NULL: go on; else why nothing may be bound now (not the leader). NULL: always. */
	const char *(*barred)(void *arg);
	/* For how long from now no other replica may lead, whatever becomes of us. NULL: there is none. */
	uint64_t (*alone_ms)(void *arg);
	void *arg;
};

struct binder;

/* What the config points to outlives it. */
int binder_new(struct loop *l, const struct bind_config *config, struct binder **out, struct hm_err *e) HM_MUST_USE;
void binder_free(struct binder *b); /* without answers; the log names those of which it is not known */
HM_DEFINE_AUTO(binder, binder_free);

/* Texts are copied. */
struct bind_request {
	const char *name_space, *pod, *uid, *node;
	void (*done)(void *arg,
		     const char *error); /* "": bound. From the loop, once; the text is good until it returns */
	void *arg;
};
int binder_bind(struct binder *b, const struct bind_request *r, struct hm_err *e) HM_MUST_USE;

/* All who wait hear `why`, and what was not sent is rolled back. New requests are for `barred` to refuse. */
void binder_stop(struct binder *b, const char *why);

/* After binder_stop: nothing of ours is on its way or unknown any more. From the loop, once. */
void binder_when_idle(struct binder *b, void (*idle)(void *arg), void *arg);

struct bind_stats {
	size_t in_hand, waiting, in_doubt;
	uint64_t bound, failed, contended, posts_again;
};
void binder_stats(const struct binder *b, struct bind_stats *out);

#endif
