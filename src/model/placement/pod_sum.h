/* What a pod needs of something (memory, cores, a card's slots), from what its containers need, as Kubernetes computes
 * it: init containers run one at a time, so the largest counts; a sidecar (an init container that stays) runs beside
 * those that come after it and beside the others, so it adds up. Containers are added in the order of their spec, init
 * containers first. */
#ifndef HM_MODEL_PLACEMENT_POD_SUM_H
#define HM_MODEL_PLACEMENT_POD_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/macros.h"

struct pod_sum {
	int64_t peak;    /* the most while init containers run */
	int64_t running; /* sidecars so far, and containers */
};

#define POD_SUM_MOST ((int64_t)1 << 48) /* of one container: no sum over a pod's containers overflows */

/* init: a plain init container. */
static inline void pod_sum_add(struct pod_sum *s, bool init, int64_t amount)
{
	amount = HM_MIN(amount, POD_SUM_MOST);
	if (init)
		s->peak = HM_MAX(s->peak, s->running + amount);
	else
		s->running += amount;
}

/* `init_done`: the init containers have ended for good and hold nothing any more. */
static inline int64_t pod_sum_total(const struct pod_sum *s, bool init_done)
{
	return init_done ? s->running : HM_MAX(s->peak, s->running);
}

#endif
