/* /webhook: admission by the options, the configuration and what is held of the cluster in memory. */
#ifndef HM_SCHED_VERBS_ADMISSION_H
#define HM_SCHED_VERBS_ADMISSION_H

#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/cluster.h"
#include "sched/options/options.h"
#include "sched/serve/server.h"
#include "sched/webhook/webhook.h"

struct admission;

/* Borrowed. Until the cluster is known nobody is refused for what it has or leaves. */
struct admission_config {
	const struct sched_options *options;
	struct cluster *cluster;
	bool (*known)(void *arg);
	void *arg;
};

int admission_new(const struct admission_config *config, struct admission **out, struct hm_err *e) HM_MUST_USE;
void admission_free(struct admission *a);
HM_DEFINE_AUTO(admission, admission_free);

const struct webhook_rules *admission_rules(const struct admission *a);

struct admission_stats {
	uint64_t patched, unchanged, refused, failed; /* failed: memory was short */
	uint64_t warnings;
};
const struct admission_stats *admission_stats(const struct admission *a);

/* For a server_route; arg is the admission. */
void admission_answer(void *arg, struct server_request *r);

#endif
