/* What an extender answers: JSON appended to *out, HTTP status 200 in any case. The names as Go marshals them. */
#ifndef HM_SCHED_EXTENDER_ANSWER_H
#define HM_SCHED_EXTENDER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "core/cursor.h"

/* `unresolvable`: no eviction would help, so kube-scheduler need not try preemption there. */
struct extender_refusal {
	const char *node, *reason;
	bool unresolvable;
};

/* These nodes will do (names NULL: the request had none). */
void extender_add_names(struct str *out, const char *const *names, size_t count);
/* No node will do. None of them named: an empty FailedNodes, which is not an error. */
void extender_add_refusals(struct str *out, const struct extender_refusal *refusals, size_t count);
/* For a request with Nodes: these (their JSON as it came; none: null), and why the others not. */
void extender_add_nodes(struct str *out, const struct piece *nodes, size_t node_count,
			const struct extender_refusal *refusals, size_t count);
/* The call failed: kube-scheduler tries the pod again. */
void extender_add_error(struct str *out, const char *text);

/* The answer to /bind; "": bound. */
void extender_add_bound(struct str *out, const char *error);

#endif
