/* A cluster to try placements in: nodes with their cards, CPU and memory, and the pods that go there. Placed by the
 * scheduler's own code; CPU and memory are looked at before it, as kube-scheduler does. */
#ifndef HM_SCHED_SIMULATE_SCENE_H
#define HM_SCHED_SIMULATE_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "model/placement/cluster.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"

struct scene {
	struct cluster *cluster;         /* owned, as are the others */
	const struct node_state **nodes; /* the cluster's */
	size_t node_count, node_cap;
	const char **names; /* room for the candidates of one pod */
	size_t names_cap;
};

int scene_init(struct scene *s, struct hm_err *e) HM_MUST_USE;
void scene_fini(struct scene *s);
static inline void scene_auto_fini(struct scene *s)
{
	scene_fini(s);
}
/* A local: hm_auto_scene s = { 0 }; */
#define hm_auto_scene __attribute__((cleanup(scene_auto_fini))) struct scene

/* Of two with a name the later counts. */
int scene_add_node(struct scene *s, struct node_state *take_node, struct hm_err *e) HM_MUST_USE;

/* As place_pod, among the nodes with CPU and memory enough, or on the one of this name if it has; NULL: on any. */
int scene_find(struct scene *s, struct placer *p, const struct pod_ask *ask, const char *node, struct place_result *out,
	       struct hm_err *e) HM_MUST_USE;

/* And what was found is reserved for good, under ask->uid. */
int scene_place(struct scene *s, struct placer *p, const struct pod_ask *ask, struct place_result *out,
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
