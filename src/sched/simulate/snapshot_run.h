/* The pods of a snapshot that wait, placed in the file's order beside what is bound there. */
#ifndef HM_SCHED_SIMULATE_SNAPSHOT_RUN_H
#define HM_SCHED_SIMULATE_SNAPSHOT_RUN_H

#include "base/str.h"
#include "core/err.h"
#include "sched/simulate/command.h"
#include "sched/simulate/snapshot.h"

struct snapshot_result {
	struct scene_sum before, after;
	int64_t lost_before, lost_after; /* scene_lost, by the snapshot's own mix */
	uint64_t bound, placed, refused;
};

/* Appends a line for each pod that waits: where it goes, or why nowhere. `scene` is as the snapshot has it, and holds
 * what is placed afterwards. */
int snapshot_run(const struct snapshot *s, struct scene *scene, struct policy *p, struct snapshot_result *out,
		 struct str *lines, struct hm_err *e) HM_MUST_USE;

#endif
