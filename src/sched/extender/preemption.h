/* The preemption verb, as k8s.io/kube-scheduler/extender/v1 has it: kube-scheduler names nodes and the pods that it
 * would evict there; the answer has the nodes that would do and all that must go from each. Keys in any case, unknown
 * ones passed over, null as absent. */
#ifndef HM_SCHED_EXTENDER_PREEMPTION_H
#define HM_SCHED_EXTENDER_PREEMPTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "io/json.h"

enum { PREEMPTION_MAX_BYTES = 16 << 20 };

struct preemption_node {
	const char *name;
	const char *const *victims; /* UIDs */
	size_t count;
	int64_t pdb_violations;
};

/* All is in the tree. */
struct preemption_args {
	struct cJSON *tree; /* owned */
	const struct cJSON *pod;
	struct preemption_node *nodes; /* owned */
	const char **uids;             /* owned; all nodes' victims */
	size_t count;
};

/* NodeNameToMetaVictims, or NodeNameToVictims where there is no such. -HM_EPROTO, -HM_EINVAL (no pod, a victim without
 * UID), -HM_ELIMIT, -HM_ENOMEM. In any case fini is due. */
int preemption_args_read(const char *body, size_t n, struct preemption_args *out, struct hm_err *e) HM_MUST_USE;
void preemption_args_fini(struct preemption_args *a);

/* The answer: begin, each node with the pods that have to go beside those named, end. */
struct preemption_answer {
	struct str *out;
	size_t count;
};
void preemption_answer_begin(struct preemption_answer *a, struct str *out);
void preemption_answer_add(struct preemption_answer *a, const struct preemption_node *n, const char *const *more,
			   size_t more_count);
void preemption_answer_end(struct preemption_answer *a);

#endif
