/* Numbers of Allocate calls: each is given once, over crashes too. They are reserved on disk in blocks, so that
 * Allocate itself writes nothing: a crash skips the rest of a block. */
#ifndef HM_AGENT_CLAIMS_COUNTER_H
#define HM_AGENT_CLAIMS_COUNTER_H

#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/worker.h"

enum { COUNTER_BLOCK = 1024 };

struct counter;

/* Reads the file and reserves the first block. No number below `floor` is given: the caller's largest number in use
 * plus one, which counts where the file is lost or unreadable (said in the log). */
int counter_open(const char *path, uint64_t floor, struct counter **out, struct hm_err *e) HM_MUST_USE;
/* After worker_free. A refill that hangs in the worker keeps the counter to the process's end. */
void counter_free(struct counter *c);
HM_DEFINE_AUTO(counter, counter_free);

/* The next number. Waits for the disk only where no block is left, and fails only if that does. */
int counter_take(struct counter *c, uint64_t *out, struct hm_err *e) HM_MUST_USE;
/* Reserves the next block, in the worker, once half of one is left, so that counter_take need not: called from a timer.
 * While the worker hangs there is that half. */
void counter_refill(struct counter *c, struct worker *w);

#endif
