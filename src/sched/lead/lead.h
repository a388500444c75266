/* Do we lead? Three ways: always (one replica); by a Lease that we take and renew (lead/election.h has the rules); or
 * by looking on at the Lease of the kube-scheduler that runs in our own pod, as HAMi does.
 *
 * The Lease is asked after each retry period; an answer that does not come within half of the renewal limit is given
 * up. A replica that cannot reach the API server stops leading by itself when its limit is over.
 *
 * Another program's Lease is told by a watch, which may lag: the limit counts from when it says that it was renewed,
 * by the clock of the machine that we share with that program. */
#ifndef HM_SCHED_LEAD_LEAD_H
#define HM_SCHED_LEAD_LEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kube/client.h"
#include "sched/lead/election.h"

enum lead_mode { LEAD_ALWAYS, LEAD_OWN_LEASE, LEAD_FOLLOW };

struct lead_config {
	enum lead_mode mode;
	/* Of its own, so that neither a rate nor a queue stands between a leader and its renewal. LEAD_ALWAYS: NULL. */
	struct kube_client *client;
	const char *name_space, *lease; /* the Lease's */
	/* Our pod's host name. LEAD_OWN_LEASE: the identity is it, "_" and 128 random bits. */
	const char *host;
	struct election_rules rules; /* LEAD_OWN_LEASE; LEAD_FOLLOW: the duration where the Lease says none */
	/* From the loop, never from inside a call; first told when we lead for the first time. */
	void (*changed)(void *arg, bool leads);
	void *arg;
};

struct lead;

/* All is copied but the client, which outlives it. -HM_EINVAL: the rules do not fit, or a name is missing. */
int lead_new(struct loop *l, const struct lead_config *config, struct lead **out, struct hm_err *e) HM_MUST_USE;
void lead_free(struct lead *l); /* the Lease stays as it is until it lapses */
HM_DEFINE_AUTO(lead, lead_free);

/* By the clock, at this moment: also true to fact in a process that slept through its limit. */
bool lead_is_ours(const struct lead *l);

/* For how long from now nobody else leads, even if we end at once; 0: we do not lead. UINT64_MAX: nobody ever does. */
uint64_t lead_alone_ms(const struct lead *l);

/* We stop leading and leave the Lease to the next, who need not wait then; done comes when the server has answered or
 * did not within a retry period. Nothing is taken any more. */
void lead_release(struct lead *l, void (*done)(void *arg), void *arg);

struct lead_stats {
	bool leads;
	const char *holder; /* who leads, as the Lease says; "" not known or nobody */
	uint64_t gained, lost, failures;
	struct hm_err last; /* the last failure; code 0: none yet */
};
void lead_stats(const struct lead *l, struct lead_stats *out);

#endif
