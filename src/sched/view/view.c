#include "sched/view/view.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sched/view/view_internal.h"

enum { FENCE_LIMIT_MS = 60000 };

void view_settle(struct view *v)
{
	if (v->told || !v->nodes_synced || !v->pods_synced || !v->quotas_synced)
		return;
	v->told = true;
	log_info("nodes and pods are known", KV_U64("nodes", map_count(v->nodes)),
		 KV_U64("nodes_with_cards", v->with_cards),
		 KV_U64("pods_with_cards", cluster_holding_count(v->config.cluster)));
	v->config.synced(v->config.arg);
}

bool view_is_synced(const struct view *v)
{
	return v->told;
}

/* ---- the fence */

void view_forget_fence(struct view *v)
{
	free(HM_STEAL(v->fence.pod_key));
	free(HM_STEAL(v->fence.key));
	free(HM_STEAL(v->fence.mark));
	loop_timer_disarm(v->fence_limit);
}

void view_pass_fence(struct view *v)
{
	void (*passed)(void *arg) = HM_STEAL(v->fence.passed);

	view_forget_fence(v);
	if (passed != NULL)
		passed(v->fence.arg);
}

static void on_listed(void *arg)
{
	view_pass_fence(arg);
}

static void on_fence_limit(void *arg)
{
	struct view *v = arg;

	view_forget_fence(v);
	kube_reflector_relist(v->pod_list, on_listed, v);
}

int view_wait(struct view *v, const struct view_fence *f, struct hm_err *e)
{
	hm_auto_str key = { 0 };

	view_forget_fence(v);
	v->fence.passed = f->passed;
	v->fence.arg = f->arg;
	if (f->mark == NULL) {
		kube_reflector_relist(v->pod_list, on_listed, v);
		return 0;
	}
	str_addf(&key, "%s/%s", f->name_space, f->pod);
	v->fence.pod_key = str_take(&key);
	v->fence.key = strdup(f->key);
	v->fence.mark = strdup(f->mark);
	if (v->fence.pod_key == NULL || v->fence.key == NULL || v->fence.mark == NULL) {
		view_forget_fence(v);
		v->fence.passed = NULL;
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	}
	loop_timer_arm(v->fence_limit, FENCE_LIMIT_MS);
	return 0;
}

/* ---- life */

static int limit_name(const char *resource, char **out, struct hm_err *e)
{
	hm_auto_str name = { 0 };

	*out = NULL;
	if (resource == NULL || resource[0] == '\0')
		return 0;
	str_addf(&name, "limits.%s", resource);
	*out = str_take(&name);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOMEM, "view: out of memory");
}

int view_new(const struct view_config *config, struct view **out, struct hm_err *e)
{
	hm_auto(view) *v = calloc(1, sizeof *v);

	if (v == NULL)
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	v->config = *config;
	v->pods = map_new();
	v->nodes = map_new();
	if (v->pods == NULL || v->nodes == NULL)
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	if (limit_name(config->pods.memory, &v->memory_limit, e) < 0 ||
	    limit_name(config->pods.cores, &v->cores_limit, e) < 0 ||
	    loop_timer_new(kube_client_loop(config->client), on_fence_limit, v, &v->fence_limit, e) < 0 ||
	    view_nodes_begin(v, e) < 0 || view_quotas_begin(v, e) < 0 || view_pods_begin(v, e) < 0)
		return hm_err_wrap(e, "view");
	*out = HM_STEAL(v);
	return 0;
}

void view_free(struct view *v)
{
	if (v == NULL)
		return;
	kube_reflector_free(v->quota_list);
	view_pods_end(v);
	view_nodes_end(v);
	if (v->fence_limit != NULL)
		view_forget_fence(v);
	loop_timer_free(v->fence_limit);
	free(v->memory_limit);
	free(v->cores_limit);
	free(v);
}

void view_stats(const struct view *v, struct view_stats *out)
{
	const struct kube_reflector *lists[] = { v->node_list, v->pod_list, v->quota_list };
	struct kube_reflector_state state;

	*out = (struct view_stats) { .nodes = map_count(v->nodes),
				     .nodes_with_cards = v->with_cards,
				     .doubted = v->doubted,
				     .unread = v->unread };
	for (size_t i = 0; i < HM_COUNT(lists); i++) {
		kube_reflector_state(lists[i], &state);
		out->failures += state.failures;
		if (i == 1)
			out->pods_told = state.objects;
	}
}
