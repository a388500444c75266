/* A PodDisruptionBudget's JSON, and a pod's labels, as model/placement/budgets.h has them. Untrusted: whoever may make
 * budgets and pods wrote them. Pure. */
#ifndef HM_SCHED_VIEW_BUDGET_READ_H
#define HM_SCHED_VIEW_BUDGET_READ_H

#include "base/str.h"
#include "core/err.h"
#include "io/json.h"
#include "model/placement/budgets.h"

enum { BUDGET_MAX_DISRUPTED = 100, POD_NAME_MAX_BYTES = 253, POD_LABELS_MAX_BYTES = 8192 };

struct budget_read {
	struct str selector, disrupted; /* owned */
	struct budget_terms terms;      /* points into both */
};
void budget_read_fini(struct budget_read *b);
static inline void budget_read_auto_fini(struct budget_read *b)
{
	budget_read_fini(b);
}
/* A local: hm_auto_budget_read b = { 0 }; */
#define hm_auto_budget_read __attribute__((cleanup(budget_read_auto_fini))) struct budget_read

/* 1: the budget; 0: it selects nobody (no demands). -HM_EINVAL: its selector is none that Kubernetes takes, -HM_ELIMIT:
 * it has more than BUDGET_MAX_WORDS; kube-scheduler takes the former as one that selects nobody. -HM_ENOMEM. Of more
 * than BUDGET_MAX_DISRUPTED disrupted pods the first count; what is longer than a pod's name may be is nobody's. Fini
 * in any case. */
int budget_read(const struct cJSON *budget, struct budget_read *out, struct hm_err *e) HM_MUST_USE;

/* metadata.labels, the first POD_LABELS_MAX of them and POD_LABELS_MAX_BYTES; str_failed where memory is short. */
void pod_labels_read(const struct cJSON *pod, struct str *out);

#endif
