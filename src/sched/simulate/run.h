/* Pods come one after another and are placed or dropped; nothing leaves. */
#ifndef HM_SCHED_SIMULATE_RUN_H
#define HM_SCHED_SIMULATE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "sched/simulate/scene.h"
#include "sched/simulate/trace.h"
#include "sched/simulate/workload.h"

enum { RUN_MAX_PERCENT = 200 };

struct run_options {
	const char *node_policy, *card_policy;
	struct fgd_weights weights;
	bool learn;             /* fgd knows only the pods that came, else all that the trace has */
	bool blind;             /* fgd does not see CPU and memory of nodes */
	uint64_t until_percent; /* of the cluster: stop when so much was asked for; 0: after all pods */
};

struct run_result {
	uint64_t pods, placed;
	uint64_t short_of_host;  /* refused: no node had the CPU and memory */
	uint64_t short_of_cards; /* refused: else */
	int64_t arrived_milli, allocated_milli;
	/* Allocated milli when so many percent of the cluster were asked for; [0, curve_count) is filled. */
	int64_t curve[RUN_MAX_PERCENT + 1];
	size_t curve_count;
	int64_t lost_milli; /* free, but of no use to the typical pod (F of mix_table.h) */
	struct scene_sum end;
};

/* `scene` is empty before and the caller's after, as it ends. */
int run_trace(const struct trace *t, const struct workload *w, const struct run_options *o, struct scene *scene,
	      struct run_result *out, struct hm_err *e) HM_MUST_USE;

#endif
