#include "agent/hami/mig_job.h"

#include <stdlib.h>

#include "agent/cards/driver.h"
#include "base/array.h"
#include "gpu/mig.h"
#include "gpu/scan.h"

/* A process list that cannot be had counts as a process. */
static int check_idle(struct gpu_driver *d, const char *uuid, struct hm_err *e)
{
	struct gpu_process first;
	size_t count = 0;

	if (gpu_processes(d, uuid, &first, 1, &count, e) < 0) {
		hm_err_wrap(e, "whether the card is idle cannot be told");
		e->code = HM_EAGAIN;
		return -HM_EAGAIN;
	}
	return count == 0 ? 0 : hm_err_set(e, HM_EAGAIN, "GPU %s: %zu processes are on it", uuid, count);
}

static int prepare(struct gpu_driver *d, const struct mig_step *s, struct hm_err *e)
{
	if (check_idle(d, s->gpu_uuid, e) < 0 || gpu_mig_enable(d, s->gpu_uuid, e) < 0)
		return -e->code;
	return gpu_mig_clear(d, s->gpu_uuid, e);
}

/* A card that does not keep its mode has lost it by a reset or reboot, though pods hold of it. */
static int ensure(struct gpu_driver *d, struct mig_step *s, struct hm_err *e)
{
	struct hm_err why;
	int r = gpu_mig_ensure(d, s->gpu_uuid, s->profile, s->at, &s->made, e);

	if (r != -HM_EAGAIN || check_idle(d, s->gpu_uuid, &why) < 0)
		return r;
	if (gpu_mig_enable(d, s->gpu_uuid, &why) < 0)
		return hm_err_wrap(e, "%s", why.msg);
	return gpu_mig_ensure(d, s->gpu_uuid, s->profile, s->at, &s->made, e);
}

static int end(struct gpu_driver *d, const struct mig_step *s, struct hm_err *e)
{
	int r = gpu_mig_destroy(d, s->gpu_uuid, s->gi, s->at, e);

	return r == -HM_ENOTFOUND ? 0 : r;
}

static void take(struct gpu_driver *d, struct mig_step *s)
{
	int r = 0;

	s->err.code = 0;
	switch (s->kind) {
	case MIG_PREPARE: r = prepare(d, s, &s->err); break;
	case MIG_ENSURE: r = ensure(d, s, &s->err); break;
	case MIG_END: r = end(d, s, &s->err); break;
	}
	if (r == 0)
		s->err.code = 0;
}

static void run(struct worker_job *job)
{
	struct mig_job *j = HM_CONTAINER(job, struct mig_job, job);
	struct gpu_driver *d = driver_gpu(j->driver);

	for (size_t i = 0; i < j->count; i++) {
		if (d != NULL)
			take(d, &j->steps[i]);
		else
			hm_err_set(&j->steps[i].err, HM_EAGAIN, "the driver is not there");
	}
}

struct mig_job *mig_job_new(const struct driver *driver, void (*done)(struct worker_job *job), void *arg)
{
	struct mig_job *j = calloc(1, sizeof *j);

	if (j != NULL)
		*j = (struct mig_job) { .job = { .run = run, .done = done }, .driver = driver, .arg = arg };
	return j;
}

void mig_job_free(struct mig_job *j)
{
	if (j == NULL)
		return;
	free(j->steps);
	free(j);
}

bool mig_job_add(struct mig_job *j, const struct mig_step *step)
{
	return HM_PUSH(j->steps, j->count, j->cap, *step);
}
