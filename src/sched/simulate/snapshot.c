#include "sched/simulate/snapshot.h"

#include <stdlib.h>

#include "base/array.h"
#include "contract/hami.h"
#include "core/macros.h"
#include "sched/view/node_read.h"
#include "sched/view/pod_read.h"

static const struct pod_rules pod_rules = { HAMI_RESOURCE_GPU,
					    HAMI_RESOURCE_MEMORY,
					    HAMI_RESOURCE_MEMORY_PERCENT,
					    HAMI_RESOURCE_CORES,
					    { .memory_factor = 1 } };
static const struct node_rules node_rules = { HAMI_RESOURCE_GPU, NULL };
/* What stands in a snapshot was believed by somebody already. */
static const struct pod_trust anyone = { NULL, false };

static void forget(struct snapshot_pod *p)
{
	pod_ask_fini(&p->ask);
	pod_hold_fini(&p->held);
}

void snapshot_fini(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++)
		forget(&s->gpu_pods[i]);
	free(s->gpu_pods);
	json_free(s->nodes);
	json_free(s->pods);
	*s = (struct snapshot) { 0 };
}

/* The list's first object, or the object itself. */
static const struct cJSON *first_of(const struct cJSON *tree)
{
	const struct cJSON *items = pod_member(tree, "items");

	return items != NULL ? items->child : tree;
}

/* NULL behind the last. */
static const struct cJSON *next_of(const struct cJSON *tree, const struct cJSON *item)
{
	return item == tree ? NULL : item->next;
}

int snapshot_read_nodes(struct snapshot *s, const char *text, size_t n, struct hm_err *e)
{
	return json_parse(text, n, &s->nodes, e);
}

static int read_pod(struct snapshot *s, const struct cJSON *json, struct hm_err *e)
{
	struct snapshot_pod p = { 0 };
	bool asks;
	int rc;

	if (pod_has_ended(json))
		return 0;
	rc = pod_read_ask(json, &pod_rules, &p.ask, e);
	asks = rc == 0 && pod_ask_any(&p.ask);
	if (asks)
		rc = pod_hold_read(json, &pod_rules, &anyone, &p.held, e);
	if (asks && rc == 0) {
		if (HM_PUSH(s->gpu_pods, s->count, s->cap, p))
			return 0;
		rc = hm_err_set(e, HM_ENOMEM, "pods: no memory");
	}
	forget(&p);
	if (rc == 0 || rc == -HM_ENOMEM)
		return rc;
	s->unread++;
	return 0;
}

int snapshot_read_pods(struct snapshot *s, const char *text, size_t n, struct hm_err *e)
{
	int rc = json_parse(text, n, &s->pods, e);

	if (rc != 0)
		return rc;
	for (const struct cJSON *p = first_of(s->pods); p != NULL && rc == 0; p = next_of(s->pods, p))
		rc = read_pod(s, p, e);
	return rc;
}

static int build_node(const struct cJSON *json, struct scene *out, struct hm_err *e)
{
	struct node_state *n = NULL;
	int rc = node_read(json, &node_rules, cluster_texts(out->cluster), &n, e);

	if (rc == -HM_ENOTFOUND)
		return 0;
	return rc == 0 ? scene_add_node(out, n, e) : rc;
}

int snapshot_build(const struct snapshot *s, struct scene *out, struct hm_err *e)
{
	int rc = scene_init(out, e);

	for (const struct cJSON *n = first_of(s->nodes); n != NULL && rc == 0; n = next_of(s->nodes, n))
		rc = build_node(n, out, e);
	for (size_t i = 0; i < s->count && rc == 0; i++)
		if (s->gpu_pods[i].held.holds)
			rc = cluster_hold(out->cluster, &s->gpu_pods[i].held.hold, e);
	return rc;
}

int snapshot_mix(const struct snapshot *s, struct pod_mix *out, struct hm_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->count && rc == 0; i++) {
		struct mix_shape shape = mix_shape_of(&s->gpu_pods[i].ask);

		rc = pod_mix_add(out, &shape, 1, e);
		if (rc == -HM_ELIMIT)
			rc = 0;
	}
	return rc;
}
