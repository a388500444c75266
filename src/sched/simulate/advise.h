/* Which few pods would have to move, so that most cards become whole again, or a pod that waits gets in. Only told:
 * nothing is ever moved. Tried out in a scene, which is afterwards as it was.
 *
 * A pod that moves ends and starts anew: pods are counted, and few are better. The search is greedy, so there may be a
 * better plan; the plan it tells is one that works, by the scheduler's own placement. */
#ifndef HM_SCHED_SIMULATE_ADVISE_H
#define HM_SCHED_SIMULATE_ADVISE_H

#include <stddef.h>

#include "core/err.h"
#include "sched/simulate/scene.h"

enum { ADVISE_MAX_MOVES = 16 };

struct advise_pod {
	struct scene_pod pod;
	const struct hold *hold; /* as the scene's cluster has it */
};

struct advise_move {
	size_t pod;       /* index */
	const char *to;   /* node */
	const char *card; /* the first of its cards there */
};

struct advise_plan {
	struct advise_move moves[ADVISE_MAX_MOVES];
	size_t count;
	const char *node;                  /* where the waiting pod gets in; NULL: nowhere, or it was not asked */
	int64_t empty_before, empty_after; /* cards */
};

/* Both: pods of HOLD_BOUND may move, if their holding is known. -HM_ENOMEM. */

/* Most whole cards for each pod moved, at most `moves` pods. No moves: nothing helps. */
int advise_free_cards(struct scene *s, struct placer *p, const struct advise_pod *pods, size_t count, size_t moves,
		      struct advise_plan *out, struct hm_err *e) HM_MUST_USE;

/* At most two pods move. *out->node is NULL where that does not help, or the pod fits already (no moves then, and the
 * node is named). */
int advise_let_in(struct scene *s, struct placer *p, const struct advise_pod *pods, size_t count,
		  const struct scene_pod *waiting, struct advise_plan *out, struct hm_err *e) HM_MUST_USE;

#endif
