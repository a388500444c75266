/* /filter: which node, and which of its cards. Answered from memory in the same turn of the loop; what is chosen is
 * reserved there, and nothing is written anywhere: /bind does that, in one call. */
#ifndef HM_SCHED_VERBS_FILTER_H
#define HM_SCHED_VERBS_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/cluster.h"
#include "model/placement/place.h"
#include "sched/view/node_read.h"
#include "sched/view/pod_read.h"

/* A promise that no Binding follows is taken back: kube-scheduler may hold a pod of a group at its Permit step. */
enum { FILTER_RESERVE_MS = 300000 };

/* How a call ended; `error` is NULL where it ended well. For events, off the path. */
struct filter_outcome {
	const struct pod_ask *ask;
	const char *node; /* chosen; NULL: none */
	double score;
	const struct refused_node *refused;
	size_t refused_count, candidates;
	const char *error;
};

struct filter_config {
	struct cluster *cluster;
	struct placer *placer;
	struct pod_rules pods;
	struct node_rules nodes;
	/* NULL: the call goes on; else why it cannot (not synced, not the leader). NULL: always. */
	const char *(*barred)(void *arg);
	void (*told)(void *arg, const struct filter_outcome *outcome); /* NULL: nobody listens */
	void *arg;
};

struct filter;

/* What the config points to outlives it. */
int filter_new(const struct filter_config *config, struct filter **out, struct hm_err *e) HM_MUST_USE;
void filter_free(struct filter *f);
HM_DEFINE_AUTO(filter, filter_free);

struct filter_stats {
	uint64_t placed, nowhere, failed, passed, asked; /* passed: no card wanted; asked: whole Nodes */
};
const struct filter_stats *filter_stats(const struct filter *f);

/* Writes into the body; appends the answer. */
void filter_answer(struct filter *f, char *body, size_t n, uint64_t now_ms, struct str *out);

#endif
