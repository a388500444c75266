/* The Nodes that come with a /filter request (Cluster Autoscaler): for a question, never to be reserved on. */
#ifndef HM_SCHED_VERBS_WHAT_IF_H
#define HM_SCHED_VERBS_WHAT_IF_H

#include <stddef.h>

#include "base/texts.h"
#include "core/cursor.h"
#include "core/err.h"
#include "sched/view/node_read.h"

/* All owned. states[i] is NULL for a Node without cards, or one that cannot be read; names[i] is "" where it has none.
 */
struct what_if {
	char **names;
	struct node_state **states;
	size_t count;
	size_t bytes; /* about what the states take */
	struct texts *texts;
};

enum { WHAT_IF_MAX_BYTES = 32 << 20 };

/* One Node after the other is read and forgotten: together they may be larger than what we may hold. -HM_ELIMIT for
 * what is no Node of the API server's, and cards of more than WHAT_IF_MAX_BYTES in all; -HM_ENOMEM. In any case fini is
 * due. */
int what_if_read(const struct piece *nodes, size_t count, const struct node_rules *rules, struct what_if *out,
		 struct hm_err *e) HM_MUST_USE;
void what_if_fini(struct what_if *w);
static inline void what_if_auto_fini(struct what_if *w)
{
	what_if_fini(w);
}
/* A local: hm_auto_what_if w = { 0 }; */
#define hm_auto_what_if __attribute__((cleanup(what_if_auto_fini))) struct what_if

#endif
