#include "sched/simulate/scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"

int scene_init(struct scene *s, struct hm_err *e)
{
	*s = (struct scene) { .cluster = cluster_new(1), .blind = s->blind };
	return s->cluster == NULL ? hm_err_set(e, HM_ENOMEM, "a cluster: no memory") : 0;
}

void scene_fini(struct scene *s)
{
	cluster_free(s->cluster);
	free(s->hosts);
	free(s->names);
	*s = (struct scene) { 0 };
}

int scene_add_node(struct scene *s, struct node_state *take_node, struct hm_err *e)
{
	struct scene_host h = { take_node, take_node->cpu_milli, take_node->host_mib };
	int rc;

	if (s->blind)
		take_node->cpu_milli = take_node->host_mib = -1;
	rc = cluster_put_node(s->cluster, take_node, e);
	if (rc == 0 && !HM_PUSH(s->hosts, s->host_count, s->host_cap, h))
		rc = hm_err_set(e, HM_ENOMEM, "nodes: no memory");
	return rc;
}

static int64_t less(int64_t amount, int64_t taken)
{
	return amount < 0 ? amount : HM_MAX(amount - taken, 0);
}

/* CPU and memory of the node go to the pod. */
static void take_host(struct scene *s, const char *node, const struct pod_ask *ask)
{
	for (size_t i = 0; i < s->host_count; i++) {
		struct scene_host *h = &s->hosts[i];

		if (strcmp(h->node->name, node) != 0)
			continue;
		h->cpu_milli = less(h->cpu_milli, ask->cpu_milli);
		h->host_mib = less(h->host_mib, ask->host_mib);
		return;
	}
}

static bool has_room(const struct scene_host *h, const struct pod_ask *ask)
{
	return (h->cpu_milli < 0 || h->cpu_milli >= ask->cpu_milli) &&
	       (h->host_mib < 0 || h->host_mib >= ask->host_mib);
}

int scene_place(struct scene *s, struct placer *p, const struct pod_ask *ask, struct place_result *out,
		struct hm_err *e)
{
	struct place_request r = { .ask = ask };
	int rc;

	if (!array_reserve(&s->names, &s->names_cap, s->host_count + 1, sizeof *s->names))
		return hm_err_set(e, HM_ENOMEM, "nodes: no memory");
	for (size_t i = 0; i < s->host_count; i++)
		if (has_room(&s->hosts[i], ask))
			s->names[r.count++] = s->hosts[i].node->name;
	r.names = s->names;
	rc = place_pod(p, s->cluster, &r, out, e);
	if (rc <= 0)
		return rc;
	rc = cluster_reserve(s->cluster, ask, out->node->name, out->grant, UINT64_MAX, e);
	if (rc != 0)
		return rc;
	take_host(s, out->node->name, ask);
	return 1;
}

struct scene_sum scene_sum(const struct scene *s)
{
	static const struct card_use nothing = { 0 };
	struct scene_sum sum = { 0 };

	for (size_t i = 0; i < s->host_count; i++) {
		const struct node_state *n = s->hosts[i].node;

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
	for (size_t i = 0; i < s->host_count && rc == 0; i++) {
		int64_t one = 0;

		rc = fgd_node_measure(f, s->hosts[i].node, &one, e);
		lost += one / 1000;
	}
	*out_milli = (lost + (1 << (MIX_WEIGHT_BITS - 1))) >> MIX_WEIGHT_BITS;
	return rc;
}
