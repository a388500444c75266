/* Gives back the charge of processes that ended while their container lives on: within a second, for every active
 * claim. Inside the container the next request that would fail does the same; this is for when nobody asks. */
#ifndef HM_AGENT_PROCESSES_SWEEP_H
#define HM_AGENT_PROCESSES_SWEEP_H

#include "agent/claims/claims.h"
#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum {
	SWEEP_EVERY_MS = 800, /* with the round itself, a second */
	/* A region whose dead could not be removed (its container holds the lock, or scribbles) is left alone this
	   long. */
	SWEEP_STUBBORN_ROUNDS = 60,
	/* One in which processes died so many rounds in a row is looked at less often: they may be invented. A
	   container in need of its memory helps itself. */
	SWEEP_IN_A_ROW = 3,
	SWEEP_PAUSE_ROUNDS = 10,
};

struct sweep;

/* The first round comes after SWEEP_EVERY_MS. `proc`, paths and claims are borrowed. */
int sweep_new(struct loop *l, const char *proc, const struct agent_paths *paths, const struct claims *claims,
	      struct sweep **out, struct hm_err *e) HM_MUST_USE;
void sweep_free(struct sweep *s);
HM_DEFINE_AUTO(sweep, sweep_free);

/* One round now; how many processes' charges were given back. */
size_t sweep_round(struct sweep *s);

#endif
