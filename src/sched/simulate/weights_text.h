/* --weights: the parts of fgd's measure by name. */
#ifndef HM_SCHED_SIMULATE_WEIGHTS_TEXT_H
#define HM_SCHED_SIMULATE_WEIGHTS_TEXT_H

#include "core/err.h"
#include "model/placement/mix_table.h"

/* "fragment=700,copies=300,balance=700,empty=-10000,step=21,blind-step=500"; what is not named is 0. -HM_EINVAL. */
int weights_text_read(const char *text, struct fgd_weights *out, struct hm_err *e) HM_MUST_USE;

#endif
