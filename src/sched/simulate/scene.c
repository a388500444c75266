#include "sched/simulate/scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"

int scene_init(struct scene *s, struct hm_err *e)
{
	*s = (struct scene) { .cluster = cluster_new(1) };
	return s->cluster == NULL ? hm_err_set(e, HM_ENOMEM, "a cluster: no memory") : 0;
}

void scene_fini(struct scene *s)
{
	cluster_free(s->cluster);
	free(s->nodes);
	free(s->names);
	*s = (struct scene) { 0 };
}

static const struct node_state **find_node(struct scene *s, const struct node_state *node)
{
	for (size_t i = 0; node != NULL && i < s->node_count; i++)
		if (s->nodes[i] == node)
			return &s->nodes[i];
	return NULL;
}

int scene_add_node(struct scene *s, struct node_state *take_node, struct hm_err *e)
{
	const struct node_state **known = find_node(s, cluster_node(s->cluster, take_node->name));
	int rc = cluster_put_node(s->cluster, take_node, e);

	if (rc == 0 && known != NULL)
		*known = take_node;
	else if (rc == 0 && !HM_PUSH(s->nodes, s->node_count, s->node_cap, take_node))
		rc = hm_err_set(e, HM_ENOMEM, "nodes: no memory");
	return rc;
}

static bool has_room(const struct node_state *n, const struct pod_ask *ask)
{
	return (n->cpu_milli < 0 || n->cpu_milli >= ask->cpu_milli) &&
	       (n->host_mib < 0 || n->host_mib >= ask->host_mib);
}

int scene_find(struct scene *s, struct placer *p, const struct pod_ask *ask, const char *node, struct place_result *out,
	       struct hm_err *e)
{
	struct place_request r = { .ask = ask };

	if (!array_reserve(&s->names, &s->names_cap, s->node_count + 1, sizeof *s->names))
		return hm_err_set(e, HM_ENOMEM, "nodes: no memory");
	for (size_t i = 0; i < s->node_count; i++)
		if (has_room(s->nodes[i], ask) && (node == NULL || strcmp(s->nodes[i]->name, node) == 0))
			s->names[r.count++] = s->nodes[i]->name;
	r.names = s->names;
	return place_pod(p, s->cluster, &r, out, e);
}

int scene_place(struct scene *s, struct placer *p, const struct pod_ask *ask, struct place_result *out,
		struct hm_err *e)
{
	int rc = scene_find(s, p, ask, NULL, out, e);

	if (rc <= 0)
		return rc;
	rc = cluster_reserve(s->cluster, ask, out->node->name, out->grant, UINT64_MAX, e);
	return rc == 0 ? 1 : rc;
}

struct scene_sum scene_sum(const struct scene *s)
{
	static const struct card_use nothing = { 0 };
	struct scene_sum sum = { 0 };

	for (size_t i = 0; i < s->node_count; i++) {
		const struct node_state *n = s->nodes[i];

		for (size_t k = 0; k < n->count; k++) {
			if (card_free_milli(&n->cards[k], &nothing) == 0)
				continue;
			sum.cards++;
			sum.milli += CARD_MILLI;
			sum.empty_cards += n->used[k].slots == 0;
			sum.free_milli += card_free_milli(&n->cards[k], &n->used[k]);
		}
	}
	return sum;
}

int scene_lost(const struct scene *s, const struct pod_mix *mix, int64_t *out_milli, struct hm_err *e)
{
	static const struct fgd_weights only_f = { .fragment = 1000 };
	hm_auto(fgd) *f = fgd_new(mix, &only_f);
	int rc = f == NULL ? hm_err_set(e, HM_ENOMEM, "fragmentation: no memory") : 0;
	int64_t lost = 0;

	if (rc == 0)
		fgd_begin(f, NULL);
	for (size_t i = 0; i < s->node_count && rc == 0; i++) {
		int64_t one = 0;

		rc = fgd_node_measure(f, s->nodes[i], &one, e);
		lost += one / 1000;
	}
	*out_milli = (lost + (1 << (MIX_WEIGHT_BITS - 1))) >> MIX_WEIGHT_BITS;
	return rc;
}
