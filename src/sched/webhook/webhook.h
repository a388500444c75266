/* Admission of pods: AdmissionReview in, AdmissionReview out, nothing else. As HAMi's webhook (its names, rules and
 * texts), but that it touches only what changes, refuses what HAMi misreads, and lets nobody write what only the
 * scheduler and the agents may write. docs/scheduler.md says what is done, docs/contracts/admission.md the texts. */
#ifndef HM_SCHED_WEBHOOK_WEBHOOK_H
#define HM_SCHED_WEBHOOK_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "hami/device_config.h"
#include "model/placement/pod_ask.h"

enum {
	WEBHOOK_MAX_BYTES = 7 << 20, /* of a body, as HAMi's; the server refuses longer ones */
	WEBHOOK_MAX_VALUES = 1 << 18,
};

/* The most that there is or was anywhere; 0: not known, or no bound. */
struct webhook_largest {
	int64_t card_mib, card_cores;
	int64_t node_cards; /* 0 too where cards are cut: a pod may have several instances of one */
};

/* What only the cluster's state can say. Each may be NULL: not known. */
struct webhook_questions {
	/* May a pod with these containers come into the namespace? `why` is for its author, in detail; "" where there
	 * is nothing to say. */
	bool (*quota_fits)(void *arg, const char *name_space, const struct card_ask *asks, size_t count, char *why,
			   size_t why_bytes);
	struct webhook_largest (*largest)(void *arg);
	/* Is there a card whose type has this in it, in any case? True where no card is known. */
	bool (*type_known)(void *arg, const char *part);
	void *arg;
};

struct webhook_rules {
	const struct device_config *device;
	const char *scheduler_name; /* NULL or "": pods keep theirs */
	bool force_overwrite_default_scheduler;
	/* Who may write allocations and signatures: user names, as "system:serviceaccount:kube-system:hami-scheduler".
	 */
	const char *const *writers;
	size_t writer_count;
	struct webhook_questions ask;
};

/* For metrics and the log. */
struct webhook_outcome {
	bool allowed, patched;
	unsigned code, warnings;
};

/* Appends the answer. `content_type` as the request had it, NULL: none. Bad input is answered, too: -HM_ENOMEM is the
 * only failure. `outcome` may be NULL. */
int webhook_answer(const struct webhook_rules *rules, const char *content_type, const char *body, size_t n,
		   struct str *out, struct webhook_outcome *outcome, struct hm_err *e) HM_MUST_USE;

#endif
