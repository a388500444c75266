/* One thread for calls that may hang (NVML). Jobs run in order of submission; a job's `done` runs in the loop's thread.
 * The two sides share nothing but the job, which belongs to the worker between submit and done. */
#ifndef HM_IO_WORKER_H
#define HM_IO_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct worker;

struct worker_job {
	void (*run)(struct worker_job *job);  /* in the worker's thread */
	void (*done)(struct worker_job *job); /* in the loop's thread, after run; frees the job if it likes */
	struct worker_job *next;              /* the worker's own */
	bool pending;                         /* submitted and not yet done; the worker's own, for the loop to read */
};

int worker_new(struct loop *l, struct worker **out, struct hm_err *e) HM_MUST_USE;
/* Embedded job: not copied, must live until done was called. */
void worker_submit(struct worker *w, struct worker_job *job);
/* Milliseconds that the job in hand has been running, 0 when idle: how a caller notices a hang. */
uint64_t worker_busy_ms(const struct worker *w, uint64_t now_ms);
size_t worker_pending(const struct worker *w); /* submitted and not yet done */

/* Waits at most wait_ms for the job in hand; jobs not started are dropped without done. True when the thread ended;
 * false when it hangs: the thread, the worker and the pending jobs are then left behind, and the process should exit.
 * Jobs that are pending after this must live on; all others are their owners' again. */
bool worker_free(struct worker *w, uint32_t wait_ms);

#endif
