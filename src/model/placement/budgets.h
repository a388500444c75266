/* PodDisruptionBudgets: whether a pod may be evicted beside others. Of each namespace its budgets; a pod that holds
 * cards has its labels (holding.h), and looks once which budgets they put it under.
 *
 * As kube-scheduler's own preemption has it (filterPodsWithPDBViolation of its plugin DefaultPreemption): a budget
 * without demands is nobody's, nor is a pod without labels under any; who is named in status.disruptedPods has been
 * counted by the API server; each other pod takes one of what the budget allows, and violates it where nothing is left.
 */
#ifndef HM_MODEL_PLACEMENT_BUDGETS_H
#define HM_MODEL_PLACEMENT_BUDGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"

/* Whoever may make budgets and pods chooses what there is to compare. Of a namespace the first words count, of a pod
 * the first labels, of the budgets that it is under the first. */
enum {
	BUDGET_MAX_WORDS = 256, /* of a selector: keys and values */
	BUDGETS_MAX_WORDS = 4096,
	POD_LABELS_MAX = 64,
	BUDGETS_OF_A_POD = 4,
};

struct budgets;
struct budget;

struct budgets *budgets_new(void); /* NULL where memory is short */
void budgets_free(struct budgets *b);
HM_DEFINE_AUTO(budgets, budgets_free);

/* ---- budgets */

enum budget_op { BUDGET_IN = 'i', BUDGET_NOT_IN = 'n', BUDGET_EXISTS = 'e', BUDGET_NOT_EXISTS = 'd' };

/* A selector is its demands, and a pod has to meet them all. */
void budget_add_demand(struct str *selector, enum budget_op op, const char *key);
void budget_add_value(struct str *selector, const char *value); /* of the last demand */

struct budget_terms {
	const struct str *selector; /* not empty */
	int64_t allowed;            /* status.disruptionsAllowed */
	const char *disrupted;      /* names, each with a newline; "": none */
};

/* A budget as it is now. -HM_ENOMEM changes nothing. */
int budgets_set(struct budgets *b, const char *name_space, const char *name, const struct budget_terms *terms,
		struct hm_err *e) HM_MUST_USE;
void budgets_remove(struct budgets *b, const char *name_space, const char *name);

/* ---- pods */

/* The budgets are good as long as the namespace's version is this. */
struct pod_labels {
	uint64_t version;
	uint32_t count;
	struct budget *over[BUDGETS_OF_A_POD];
	char text[];
};

void pod_labels_add(struct str *text, const char *key, const char *value);
/* *out: freed with free; NULL for none ("" or NULL). -HM_ENOMEM. */
int pod_labels_new(const char *text, struct pod_labels **out) HM_MUST_USE;

/* ---- evictions: of one node, thought of one after the other */

void budgets_begin(struct budgets *b);
/* The pod goes, too: is that more than a budget allows? labels NULL: no. */
bool budgets_take(struct budgets *b, const char *name_space, const char *pod, struct pod_labels *labels);
/* Labels, values and names compared since it was made: some 10 ns each. A call of budgets_take adds BUDGETS_MAX_WORDS *
 * POD_LABELS_MAX at most, which is left out where pod and budgets are as they were, and BUDGETS_OF_A_POD times the
 * names of a budget's disrupted pods. */
uint64_t budgets_work(const struct budgets *b);

#endif
