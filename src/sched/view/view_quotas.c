#include "base/log.h"
#include "hami/quantity.h"
#include "sched/view/view_internal.h"

static int64_t limit_of(const struct cJSON *hard, const char *name)
{
	const struct cJSON *value = name != NULL ? pod_member(hard, name) : NULL;
	struct quantity q;

	if (value == NULL || quantity_read(value, &q, NULL) < 0 || q.kind != QUANTITY_WHOLE)
		return QUOTA_NO_LIMIT;
	return q.value;
}

struct quota_limits view_quota_limits(const struct cJSON *quota, const char *memory, const char *cores)
{
	const struct cJSON *hard = pod_member(pod_member(quota, "spec"), "hard");

	return (struct quota_limits) { limit_of(hard, memory), limit_of(hard, cores) };
}

static void on_changed(void *arg, const struct kube_object *o)
{
	struct view *v = arg;
	const struct quota_limits limits = view_quota_limits(o->tree, v->memory_limit, v->cores_limit);
	struct quotas *quotas = cluster_quotas(v->config.cluster);

	if (limits.memory == QUOTA_NO_LIMIT && limits.cores == QUOTA_NO_LIMIT) {
		quotas_remove(quotas, o->name_space, o->name);
	} else if (quotas_set(quotas, o->name_space, o->name, limits, NULL) < 0) {
		view_missed(v, VIEW_QUOTAS, o->key);
	}
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	struct view *v = arg;

	quotas_remove(cluster_quotas(v->config.cluster), o->name_space, o->name);
}

static void on_synced(void *arg)
{
	view_synced(arg, VIEW_QUOTAS);
}

static void on_listed(void *arg)
{
	view_listed(arg, VIEW_QUOTAS);
}

int view_quotas_begin(struct view *v, struct hm_err *e)
{
	const struct kube_reflector_events events = {
		.changed = on_changed, .deleted = on_deleted, .synced = on_synced, .listed = on_listed, .arg = v
	};
	const struct kube_reflector_options options = { .path = "/api/v1/resourcequotas", .page = v->config.page };

	return kube_reflector_new(v->config.client, &options, &events, &v->parts[VIEW_QUOTAS].list, e);
}
