/* A cluster to try placements in: nodes with their cards, CPU and memory, and the pods that go there. Placed by the
 * scheduler's own code; CPU and memory, and what screen.h knows, are looked at before it, as kube-scheduler does. */
#ifndef HM_SCHED_SIMULATE_SCENE_H
#define HM_SCHED_SIMULATE_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "model/placement/cluster.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"
#include "sched/simulate/screen.h"

struct scene {
	struct cluster *cluster;         /* owned, as are the others */
	const struct node_state **nodes; /* the cluster's */
	size_t node_count, node_cap;
	struct screen_node *screens; /* nodes[i]'s */
	size_t screens_cap;
	const char **names; /* room for the candidates of one pod */
	size_t names_cap;
	size_t screened[SCREEN_REASONS]; /* nodes that the last pod was not tried on */
};

/* What is borrowed here outlives its use. */
struct scene_pod {
	const struct pod_ask *ask;
	struct screen_pod screen;
};

int scene_init(struct scene *s, struct hm_err *e) HM_MUST_USE;
void scene_fini(struct scene *s);
static inline void scene_auto_fini(struct scene *s)
{
	scene_fini(s);
}
/* A local: hm_auto_scene s = { 0 }; */
#define hm_auto_scene __attribute__((cleanup(scene_auto_fini))) struct scene

/* Of two with a name the later counts. What `screen` borrows must stay. */
int scene_add_node(struct scene *s, struct node_state *take_node, struct screen_node screen,
		   struct hm_err *e) HM_MUST_USE;

/* As place_pod, among the nodes that let it in and have CPU and memory enough, or on the one of this name if it does;
 * NULL: on any. */
int scene_find(struct scene *s, struct placer *p, const struct scene_pod *pod, const char *node,
	       struct place_result *out, struct hm_err *e) HM_MUST_USE;

/* And what was found is reserved for good, under its uid. */
int scene_place(struct scene *s, struct placer *p, const struct scene_pod *pod, struct place_result *out,
		struct hm_err *e) HM_MUST_USE;

/* Over all cards that can be shared. */
struct scene_sum {
	int64_t cards, empty_cards;
	int64_t milli, free_milli; /* a card is 1000 */
};
struct scene_sum scene_sum(const struct scene *s);

/* Of its free milli those of no use to the pods of the mix: F of docs/placement.md. */
int scene_lost(const struct scene *s, const struct pod_mix *mix, int64_t *out_milli, struct hm_err *e) HM_MUST_USE;

#endif
