/* The order in which pods come, as the FGD paper makes it: random copies are added or pods removed until together they
 * ask for so much of the cluster, then all are shuffled. The same seed gives the same order. */
#ifndef HM_SCHED_SIMULATE_WORKLOAD_H
#define HM_SCHED_SIMULATE_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "sched/simulate/trace.h"

struct workload {
	uint32_t *order; /* owned: indices of the trace's pods */
	size_t count, cap;
};

void workload_fini(struct workload *w);
static inline void workload_auto_fini(struct workload *w)
{
	workload_fini(w);
}
/* A local: hm_auto_workload w = { 0 }; */
#define hm_auto_workload __attribute__((cleanup(workload_auto_fini))) struct workload

/* Of all pods, once each, in the file's order. */
int workload_plain(const struct trace *t, struct workload *out, struct hm_err *e) HM_MUST_USE;

/* load_milli: what they ask for together, in milli of cards. -HM_EINVAL where no pod asks for any. */
int workload_shuffled(const struct trace *t, int64_t load_milli, uint64_t seed, struct workload *out,
		      struct hm_err *e) HM_MUST_USE;

#endif
