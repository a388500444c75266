/* A pod that fits nowhere, told as an Event of it: HAMi's words, but one Event in all, and with numbers instead of
 * every node's name, so that the same trouble again is the same Event again. A pod that was placed is told of by its
 * Binding.
 */
#ifndef HM_SCHED_VERBS_FILTER_EVENTS_H
#define HM_SCHED_VERBS_FILTER_EVENTS_H

#include "base/str.h"
#include "kube/event.h"
#include "sched/verbs/filter.h"

/* "no available node, 3 nodes do not meet: 2 CardInsufficientMemory, 1 node unregistered"; or the error. */
void filter_describe(const struct filter_outcome *o, struct str *out);

/* Nothing for a pod that was placed, or that nobody can name. */
void filter_tell(struct kube_events *events, const struct filter_outcome *o);

#endif
