/* Keeps the compute limit honest where containers share a card: takes the driver's samples of who was at work, several
 * times a second, in the worker that NVML has (its calls may hang: then nothing is sampled, and what was written to the
 * regions runs out by itself). Costs nothing while no container is limited. */
#ifndef HM_AGENT_PROCESSES_SAMPLER_H
#define HM_AGENT_PROCESSES_SAMPLER_H

#include "agent/cards/driver.h"
#include "agent/claims/claims.h"
#include "agent/options/paths.h"
#include "agent/processes/hami_monitor.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"

enum {
	/* Below the shortest period of the driver's samples, 1/6 s: so that none is missed, and each is had alone. */
	SAMPLER_EVERY_MS = 150,
	SAMPLER_IDLE_MS = 500,    /* while nobody is at work */
	SAMPLER_REST_MS = 1000,   /* while nothing is to be sampled; and how often containers are looked at anew */
	SAMPLER_SIGHT_MS = 60000, /* how often the pids are asked for again, where they were not seen */
};

struct sampler_config {
	const char *proc; /* /proc */
	const struct agent_paths *paths;
	const struct claims *claims;
	const struct driver *driver;
	struct hami_monitor *monitor; /* NULL: none. Else it is told who is at work, on whichever card */
	struct worker *worker;
};

struct sampler;

/* The first pass comes soon. All of config is borrowed. */
int sampler_new(struct loop *l, const struct sampler_config *config, struct sampler **out,
		struct hm_err *e) HM_MUST_USE;
/* After worker_free only. A look that hangs in the worker keeps the sampler to the process's end. */
void sampler_free(struct sampler *s);

#endif
