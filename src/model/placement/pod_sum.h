/* What a pod needs of a card, or of cards together, from what its containers need, as Kubernetes computes it: init
 * containers run one at a time, so the largest counts; a sidecar (an init container that stays) runs beside those that
 * come after it and beside the others, so it adds up. Containers are added in the order of their spec, init containers
 * first. */
#ifndef HM_MODEL_PLACEMENT_POD_SUM_H
#define HM_MODEL_PLACEMENT_POD_SUM_H

#include <stdbool.h>

#include "model/placement/node_state.h"

struct pod_sum {
	struct card_use peak;    /* the most while init containers run */
	struct card_use running; /* sidecars so far, and containers */
};

/* init: a plain init container. */
static inline void pod_sum_add(struct pod_sum *s, bool init, struct card_use own)
{
	struct card_use now = card_use_sum(s->running, own);

	if (init)
		s->peak = card_use_larger(s->peak, now);
	else
		s->running = now;
}

/* Over its whole life: init containers that are done run again when the pod's sandbox is lost. */
static inline struct card_use pod_sum_total(const struct pod_sum *s)
{
	return card_use_larger(s->peak, s->running);
}

/* What the total would be with a container more; whether it is an init container is all one. */
static inline struct card_use pod_sum_with(const struct pod_sum *s, struct card_use own)
{
	return card_use_larger(s->peak, card_use_sum(s->running, own));
}

#endif
