/* The CSV files of Alibaba's public GPU trace (cluster-trace-gpu-v2023), of what else has such columns, and what they
 * mean here: a share is a part of a card's memory, a whole card is one that nobody else has (cores 100).
 *
 *     nodes: sn, cpu_milli, memory_mib, gpu, model
 *     pods:  name, cpu_milli, memory_mib, num_gpu, gpu_milli, and, if there, gpu_spec ("T4|P100": these models only) */
#ifndef HM_SCHED_SIMULATE_TRACE_H
#define HM_SCHED_SIMULATE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "model/placement/pod_ask.h"
#include "sched/simulate/scene.h"

struct trace_node {
	char *name, *type; /* owned */
	uint32_t cards;
	int64_t cpu_milli, host_mib;
};

struct trace_pod {
	char *name, *types; /* owned; types: NULL for any */
	struct pod_ask ask; /* without UID */
	int64_t milli;      /* of all its cards */
};

struct trace {
	struct trace_node *nodes; /* owned */
	size_t node_count, node_cap;
	struct trace_pod *pods; /* owned */
	size_t pod_count, pod_cap;
	int64_t milli; /* of all nodes' cards */
};

void trace_fini(struct trace *t);
static inline void trace_auto_fini(struct trace *t)
{
	trace_fini(t);
}
/* A local: hm_auto_trace t = { 0 }; */
#define hm_auto_trace __attribute__((cleanup(trace_auto_fini))) struct trace

/* -HM_EPROTO names line and column; -HM_ENOMEM. */
int trace_read_nodes(struct trace *t, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;
int trace_read_pods(struct trace *t, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;

/* All nodes, empty. */
int trace_build(const struct trace *t, struct scene *out, struct hm_err *e) HM_MUST_USE;

#endif
