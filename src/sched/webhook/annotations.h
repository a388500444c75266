/* Annotations in review: what only the scheduler and the agents may write, and what a pod's author wrote in vain. */
#ifndef HM_SCHED_WEBHOOK_ANNOTATIONS_H
#define HM_SCHED_WEBHOOK_ANNOTATIONS_H

#include <stdbool.h>

#include "sched/webhook/review.h"
#include "sched/webhook/webhook.h"

/* False, and the answer says so, where a user who is not allowed to writes, changes or removes an allocation or a
 * signature. */
bool annotations_guard(const struct webhook_rules *rules, const struct review *r, struct answer *answer);

/* Warns of wishes that come to nothing: misspelt, of a card that there is not, on a pod without a card. */
void annotations_advise(const struct webhook_rules *rules, const struct cJSON *annotations, bool gpu,
			struct answer *answer);

/* Warns of wishes that stand on the object instead of on its pods' template. */
void annotations_advise_workload(const struct cJSON *object, const struct cJSON *template, const char *kind,
				 struct answer *answer);

#endif
