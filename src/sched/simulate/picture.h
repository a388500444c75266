/* What came out, as SVG. */
#ifndef HM_SCHED_SIMULATE_PICTURE_H
#define HM_SCHED_SIMULATE_PICTURE_H

#include <stddef.h>

#include "base/str.h"
#include "sched/simulate/run.h"
#include "sched/simulate/scene.h"

/* Left: what was allocated as more and more was asked for, a line for each run; not where there are none. Right: every
 * card as the last run left it, the darker the fuller, a column of cards for each node. */
void picture_write(const struct run_result *runs, size_t count, int64_t cluster_milli, const struct scene *scene,
		   const char *title, struct str *out);

#endif
