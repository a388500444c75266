/* What may happen, and what the world and the scheduler make of it. */
#ifndef HM_TESTS_MODEL_CHECKER_ACTIONS_H
#define HM_TESTS_MODEL_CHECKER_ACTIONS_H

#include "model_checker/subject.h"
#include "model_checker/world.h"

/* One random thing. */
void act(struct world *w, struct subject *s);
/* The scheduler ends and another begins: all that it knows is what the API server has. */
void restart(struct world *w, struct subject *s);
/* Every Binding's end is known, every pod is told, every reservation has expired. */
void settle(struct world *w, struct subject *s);

#endif
