/* The three parts of the view, each with its reflector. */
#ifndef HM_SCHED_VIEW_VIEW_INTERNAL_H
#define HM_SCHED_VIEW_VIEW_INTERNAL_H

#include "base/map.h"
#include "io/loop.h"
#include "kube/reflector.h"
#include "sched/view/print.h"
#include "sched/view/view.h"

/* Of a pod that holds something. */
struct pod_row {
	uint64_t print; /* of all that pod_hold_read took from it */
	bool doubted;   /* an event was told */
};

struct node_row {
	struct view_node view; /* points into text */
	uint64_t print, cordon;
	char *text; /* owned: name, uid, version, lock, why */
};

struct view {
	struct view_config config;
	struct kube_reflector *node_list, *pod_list, *quota_list;
	struct map *pods;  /* by UID, struct pod_row */
	struct map *nodes; /* by name, struct node_row */
	bool nodes_synced, pods_synced, quotas_synced, told;
	char *memory_limit, *cores_limit; /* "limits.nvidia.com/gpumem"; NULL: no such resource */
	uint64_t doubted, unread;
	size_t with_cards;
	struct {
		char *pod_key, *key, *mark; /* owned; NULL: nobody waits for a mark */
		void (*passed)(void *arg);
		void *arg;
	} fence;
	struct loop_timer *fence_limit;
};

void view_settle(struct view *v);       /* synced is told when all three are */
void view_forget_fence(struct view *v); /* its texts */
void view_pass_fence(struct view *v);

int view_nodes_begin(struct view *v, struct hm_err *e) HM_MUST_USE;
void view_nodes_end(struct view *v);
int view_pods_begin(struct view *v, struct hm_err *e) HM_MUST_USE;
void view_pods_end(struct view *v);
int view_quotas_begin(struct view *v, struct hm_err *e) HM_MUST_USE;

#endif
