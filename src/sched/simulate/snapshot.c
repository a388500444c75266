#include "sched/simulate/snapshot.h"

#include <stdlib.h>

#include "base/array.h"
#include "core/macros.h"
#include "sched/options/options.h"
#include "sched/simulate/objects.h"
#include "sched/view/host_read.h"
#include "sched/view/node_read.h"
#include "sched/view/pod_read.h"

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
	device_config_free(s->device);
	str_fini(&s->notes);
	*s = (struct snapshot) { 0 };
}

int snapshot_configure(struct snapshot *s, const char *device_config_file, struct hm_err *e)
{
	return sched_device_config(device_config_file, NULL, &s->device, e);
}

int snapshot_read_nodes(struct snapshot *s, const char *text, size_t n, struct hm_err *e)
{
	return json_parse(text, n, &s->nodes, e);
}

static const char *name_of(const struct cJSON *json, const char *key)
{
	const char *name = pod_text(pod_member(json, "metadata"), key);

	return name == NULL ? "" : name;
}

static void note_pod(struct snapshot *s, const struct cJSON *json, const char *why, const char *what_then)
{
	str_addf(&s->notes, "pod %s/%s: %s: %s\n", name_of(json, "namespace"), name_of(json, "name"), why, what_then);
}

/* What was read of the pod is kept where it has to do with cards; false: it is not. */
static bool is_kept(struct snapshot *s, const struct cJSON *json, struct snapshot_pod *p, int rc, struct hm_err *e)
{
	bool holds = p->held.holds;

	if (rc != 0 && !holds) {
		note_pod(s, json, e->msg, "it is left out");
		s->unread++;
		return false;
	}
	if (rc == 0 && !pod_ask_any(&p->ask))
		return false;
	if (pod_node(json) != NULL && !holds) {
		note_pod(s, json, "it is on a node, but has no cards there", "it is left out");
		return false;
	}
	if (holds && p->held.doubt.code != 0)
		note_pod(s, json, p->held.doubt.msg, "counted as the most that it could hold");
	return true;
}

static int read_pod(struct snapshot *s, const struct cJSON *json, struct hm_err *e)
{
	const struct pod_rules rules = pod_rules_of(s->device);
	struct snapshot_pod p = { .screen = screen_pod_of(json) };
	int rc;

	if (pod_has_ended(json))
		return 0;
	rc = pod_hold_read(json, &rules, &anyone, &p.held, e);
	if (rc == 0)
		rc = pod_read_ask(json, &rules, &p.ask, e);
	if (rc != -HM_ENOMEM && is_kept(s, json, &p, rc, e)) {
		if (HM_PUSH(s->gpu_pods, s->count, s->cap, p))
			return 0;
		rc = hm_err_set(e, HM_ENOMEM, "pods: no memory");
	}
	forget(&p);
	return rc == -HM_ENOMEM ? rc : 0;
}

int snapshot_read_pods(struct snapshot *s, const char *text, size_t n, struct hm_err *e)
{
	int rc = json_parse(text, n, &s->pods, e);

	if (rc != 0)
		return rc;
	for (const struct cJSON *p = objects_first(s->pods); p != NULL && rc == 0; p = objects_next(s->pods, p))
		rc = read_pod(s, p, e);
	return rc;
}

static int build_node(struct snapshot *s, const struct cJSON *json, struct scene *out, struct hm_err *e)
{
	const struct node_rules rules = { s->device->resource_count, NULL };
	struct node_state *n = NULL;
	int rc = node_read(json, &rules, cluster_texts(out->cluster), &n, e);

	if (rc == 0)
		return scene_add_node(out, n, screen_node_of(json), e);
	if (rc == -HM_ENOMEM || rc == -HM_ENOTFOUND)
		return rc == -HM_ENOMEM ? rc : 0;
	str_addf(&s->notes, "node %s: %s: it has no cards\n", name_of(json, "name"), e->msg);
	return 0;
}

static int hold(struct snapshot *s, struct scene *out, struct pod_hold *held, struct hm_err *e)
{
	const struct hold *h = &held->hold;
	int rc = cluster_hold(out->cluster, h, e);

	if (rc != -HM_EINVAL)
		return rc;
	str_addf(&s->notes, "pod %s/%s: %s: counted as the most that it could hold\n", h->name_space, h->name, e->msg);
	pod_hold_doubt(held, e);
	return cluster_hold(out->cluster, h, e);
}

/* What every pod has of its node, with cards or without. */
static int take_host(const struct cJSON *json, struct scene *out, struct hm_err *e)
{
	const char *uid = name_of(json, "uid"), *node = pod_node(json);

	if (uid[0] == '\0' || node == NULL || pod_has_ended(json))
		return 0;
	return cluster_take_host(out->cluster, uid, node, host_of_pod(json), e);
}

int snapshot_build(struct snapshot *s, struct scene *out, struct hm_err *e)
{
	int rc = scene_init(out, e);

	for (const struct cJSON *n = objects_first(s->nodes); n != NULL && rc == 0; n = objects_next(s->nodes, n))
		rc = build_node(s, n, out, e);
	for (const struct cJSON *p = objects_first(s->pods); p != NULL && rc == 0; p = objects_next(s->pods, p))
		rc = take_host(p, out, e);
	for (size_t i = 0; i < s->count && rc == 0; i++)
		if (s->gpu_pods[i].held.holds)
			rc = hold(s, out, &s->gpu_pods[i].held, e);
	return rc;
}

int snapshot_mix(const struct snapshot *s, struct pod_mix *out, struct hm_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->count && rc == 0; i++) {
		struct mix_shape shape = mix_shape_of(&s->gpu_pods[i].ask);

		if (s->gpu_pods[i].held.doubt.code != 0)
			continue;
		rc = pod_mix_add(out, &shape, 1, e);
		if (rc == -HM_ELIMIT)
			rc = 0;
	}
	return rc;
}
