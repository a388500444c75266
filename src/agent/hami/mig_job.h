/* A round of changes to the cards' MIG, in the worker: each step on its own, so that one that fails keeps no other from
 * being done. Blocking; belongs to the worker between submit and done. */
#ifndef HM_AGENT_HAMI_MIG_JOB_H
#define HM_AGENT_HAMI_MIG_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cluster/pod_view.h"
#include "core/err.h"
#include "io/worker.h"
#include "model/mig.h"

enum mig_step_kind {
	MIG_PREPARE, /* MIG mode on and no instances, if no process is on the card: -HM_EAGAIN else, and nothing changed
		      */
	MIG_ENSURE,  /* the instance `at`, and MIG mode on before it; `made` says which it is */
	MIG_END,     /* the instance `gi` if it stands `at`; one that is gone is done */
};

struct mig_step {
	enum mig_step_kind kind;
	char gpu_uuid[HM_UUID_BYTES], profile[MIG_NAME_BYTES];
	struct mig_placement at;
	unsigned gi;
	/* Whose it is: MIG_ENSURE, MIG_END of a hold. "": nobody's. */
	char pod_uid[POD_UID_BYTES];
	uint32_t container, device;
	/* What came of it. */
	struct mig_device made;
	struct hm_err err; /* code 0: done */
};

struct driver;

struct mig_job {
	struct worker_job job;
	const struct driver *driver; /* whose NVML is used */
	struct mig_step *steps;      /* owned */
	size_t count, cap;
	void *arg;
};

/* NULL where memory is short. `done` runs in the loop. */
struct mig_job *mig_job_new(const struct driver *driver, void (*done)(struct worker_job *job), void *arg);
void mig_job_free(struct mig_job *j);
bool mig_job_add(struct mig_job *j, const struct mig_step *step) HM_MUST_USE;

#endif
