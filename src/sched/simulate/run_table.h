/* What came out of runs, a line for each. */
#ifndef HM_SCHED_SIMULATE_RUN_TABLE_H
#define HM_SCHED_SIMULATE_RUN_TABLE_H

#include "base/str.h"
#include "sched/simulate/run.h"

/* milli: of all cards of the cluster. */
void run_table_head(struct str *out);
void run_table_add(struct str *out, const char *name, const struct run_result *r, int64_t milli);
void run_table_mean(struct str *out, const struct run_result *runs, size_t count, int64_t milli);

#endif
