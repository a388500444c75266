/* The options as a table; for options.c. */
#ifndef HM_SCHED_OPTIONS_OPTIONS_TABLE_H
#define HM_SCHED_OPTIONS_OPTIONS_TABLE_H

#include "sched/options/options.h"

void sched_options_table(struct sched_options *o, struct option_spec table[SCHED_OPTION_COUNT]);

#endif
