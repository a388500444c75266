/* The daemon: its parts, made in order, tied together, run, and taken down in order. */
#ifndef HM_SCHED_SCHEDULER_H
#define HM_SCHED_SCHEDULER_H

#include "core/err.h"
#include "sched/options/options.h"

/* Runs until a signal asks it to end: 0, or why it could not start or go on. */
int scheduler_run(const struct sched_options *o, struct hm_err *e) HM_MUST_USE;

#endif
