/* The parts of the view, each with its reflector. */
#ifndef HM_SCHED_VIEW_VIEW_INTERNAL_H
#define HM_SCHED_VIEW_VIEW_INTERNAL_H

#include "base/map.h"
#include "core/fnv.h"
#include "io/loop.h"
#include "kube/reflector.h"
#include "sched/view/view.h"
#include "sched/view/view_verify.h"

/* Of a pod that holds something. */
struct pod_row {
	uint64_t print;  /* of all that pod_hold_read took from it; 0: it is to be read again */
	uint64_t beside; /* of what changes without touching that (cluster_amend) */
	bool doubted;    /* an event was told */
};

struct node_row {
	struct view_node view; /* points into text */
	uint64_t print, cordon;
	char *text; /* owned: name, uid, version, lock, why */
};

/* The first are needed to place pods. */
enum view_kind { VIEW_NODES, VIEW_PODS, VIEW_QUOTAS, VIEW_NEEDED, VIEW_BUDGETS = VIEW_NEEDED, VIEW_KINDS };

struct view_part {
	struct kube_reflector *list;
	bool synced;
	bool missed; /* something was told that could not be taken: memory was short */
	bool again;  /* listed anew because of it */
};

struct view {
	struct view_config config;
	struct view_part parts[VIEW_KINDS];
	struct map *pods;           /* by UID, struct pod_row */
	struct map *nodes;          /* by name, struct node_row */
	struct map *no_budgets;     /* by UID: those that count for nobody, once told in the log */
	struct view_verify *verify; /* NULL: there are no keys */
	bool told;
	char *memory_limit, *cores_limit; /* "limits.nvidia.com/gpumem"; NULL: no such resource */
	uint64_t doubted, unread, began_ms;
	size_t with_cards;
	struct {
		char *pod_key, *key, *mark; /* owned; NULL: nobody waits for a mark */
		bool at_list;               /* it passes at the end of the list of pods that is under way */
		void (*passed)(void *arg);
		void *arg;
	} fence;
	struct loop_timer *fence_limit, *again;
};

void view_synced(struct view *v, enum view_kind kind);
void view_settle(struct view *v); /* told when all are synced and no signature is unknown */
/* Nothing of the object counts until all of its kind are listed anew, soon; nothing is placed before. */
void view_missed(struct view *v, enum view_kind kind, const char *key);
void view_listed(struct view *v, enum view_kind kind); /* a list has ended */
void view_pods_doubt_again(struct view *v);
/* The pod that is waited for bears the mark. */
void view_fence_seen(struct view *v);

int view_nodes_begin(struct view *v, struct hm_err *e) HM_MUST_USE;
void view_nodes_end(struct view *v);
int view_pods_begin(struct view *v, struct hm_err *e) HM_MUST_USE;
void view_pods_end(struct view *v);
/* What is no whole number is not looked at, as in HAMi. Names as `limits.<resource>`; NULL: there is no such resource.
 */
struct quota_limits view_quota_limits(const struct cJSON *quota, const char *memory, const char *cores);
int view_quotas_begin(struct view *v, struct hm_err *e) HM_MUST_USE;
int view_budgets_begin(struct view *v, struct hm_err *e) HM_MUST_USE;
void view_budgets_end(struct view *v);

#endif
