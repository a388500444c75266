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
	free(s->screens);
	free(s->names);
	*s = (struct scene) { 0 };
}

/* Index; node_count where it is none of them. */
static size_t find_node(const struct scene *s, const struct node_state *node)
{
	size_t i = 0;

	while (i < s->node_count && s->nodes[i] != node)
		i++;
	return i;
}

int scene_add_node(struct scene *s, struct node_state *take_node, struct screen_node screen, struct hm_err *e)
{
	const struct node_state *known = cluster_node(s->cluster, take_node->name);
	size_t at = known == NULL ? s->node_count : find_node(s, known);
	int rc = cluster_put_node(s->cluster, take_node, e);

	if (rc != 0)
		return rc;
	if (!array_reserve(&s->screens, &s->screens_cap, at + 1, sizeof *s->screens) ||
	    !array_reserve(&s->nodes, &s->node_cap, at + 1, sizeof *s->nodes))
		return hm_err_set(e, HM_ENOMEM, "nodes: no memory");
	s->nodes[at] = take_node;
	s->screens[at] = screen;
	s->node_count = HM_MAX(s->node_count, at + 1);
	return 0;
}

static bool has_room(const struct node_state *n, const struct pod_ask *ask)
{
	return (n->cpu_milli < 0 || n->cpu_milli >= ask->cpu_milli) &&
	       (n->host_mib < 0 || n->host_mib >= ask->host_mib);
}

static enum screen_reason screen(const struct scene *s, size_t node, const struct scene_pod *pod)
{
	enum screen_reason why = screen_pod_on(&pod->screen, &s->screens[node]);

	return why == SCREEN_PASSES && !has_room(s->nodes[node], pod->ask) ? SCREEN_SHORT : why;
}

int scene_find(struct scene *s, struct placer *p, const struct scene_pod *pod, const char *node,
	       struct place_result *out, struct hm_err *e)
{
	struct place_request r = { .ask = pod->ask };

	if (!array_reserve(&s->names, &s->names_cap, s->node_count + 1, sizeof *s->names))
		return hm_err_set(e, HM_ENOMEM, "nodes: no memory");
	memset(s->screened, 0, sizeof s->screened);
	for (size_t i = 0; i < s->node_count; i++) {
		enum screen_reason why;

		if (node != NULL && strcmp(s->nodes[i]->name, node) != 0)
			continue;
		why = screen(s, i, pod);
		if (why == SCREEN_PASSES)
			s->names[r.count++] = s->nodes[i]->name;
		else
			s->screened[why]++;
	}
	r.names = s->names;
	return place_pod(p, s->cluster, &r, out, e);
}

int scene_place(struct scene *s, struct placer *p, const struct scene_pod *pod, struct place_result *out,
		struct hm_err *e)
{
	int rc = scene_find(s, p, pod, NULL, out, e);

	if (rc <= 0)
		return rc;
	rc = cluster_reserve(s->cluster, pod->ask, out->node->name, out->grant, UINT64_MAX, e);
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
