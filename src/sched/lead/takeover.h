/* From "we lead" to "we may decide": what the last leader bound must be known first, and everybody must find us.
 *
 *  1. Our pod gets the label hami.io/scheduler-role: leader, by which the chart's Service finds us, and in the same
 *     write a new mark. The API server's watch keeps the order of writes: when it tells our pod with the mark, it has
 *     told every Binding of before. The view waits for that (view_wait), for milliseconds as a rule. Without a pod of
 *     ours that may be written, all pods are listed anew instead.
 *     No Lease says when a former process of an only replica ended, so it looks first: a pod that bears a mark already,
 *     or cannot be read, is of a container that was started again. What that sent is over after former_ms.
 *  2. Then `ready`. From then on each 15 s: other replicas that still bear the label lose it, and ours has it.
 *
 * takeover_end: we lead no more. Our label becomes follower, if the API server can be reached. */
#ifndef HM_SCHED_LEAD_TAKEOVER_H
#define HM_SCHED_LEAD_TAKEOVER_H

#include <stdbool.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kube/client.h"
#include "sched/view/view.h"

struct takeover_config {
	struct kube_client *client;
	struct view *view;
	const char *name_space, *pod; /* ours; NULL or "": not in a pod. Borrowed */
	uint64_t former_ms;           /* `alone`: how long what a process has sent may be on its way */
	void (*ready)(void *arg);     /* once for each takeover_begin that is not ended before */
	void *arg;
};

struct takeover;

int takeover_new(struct loop *l, const struct takeover_config *config, struct takeover **out,
		 struct hm_err *e) HM_MUST_USE;
void takeover_free(struct takeover *t); /* before its view and client */
HM_DEFINE_AUTO(takeover, takeover_free);

/* After the view is synced. `alone`: nobody leads but this process and those that it follows, once in its life: where
 * it is in no pod that could be marked, `ready` comes at once. */
void takeover_begin(struct takeover *t, bool alone);
void takeover_end(struct takeover *t);
bool takeover_is_done(const struct takeover *t);

#endif
