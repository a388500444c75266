#include "sched/view/view.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sched/view/view_internal.h"

enum { FENCE_LIMIT_MS = 60000, AGAIN_MS = 1000 };

static bool all_synced(const struct view *v)
{
	for (size_t i = 0; i < VIEW_NEEDED; i++)
		if (!v->parts[i].synced)
			return false;
	return true;
}

void view_synced(struct view *v, enum view_kind kind)
{
	v->parts[kind].synced = true;
	view_settle(v);
}

void view_settle(struct view *v)
{
	if (v->told || !all_synced(v) || (v->verify != NULL && !view_verify_is_idle(v->verify)))
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

/* Of the kinds from this one to before that. */
static const char *short_of(const struct view *v, enum view_kind from, enum view_kind to)
{
	for (size_t i = from; i < to; i++)
		if (v->parts[i].missed || v->parts[i].again)
			return "the scheduler's memory was short: it lists the cluster anew";
	return NULL;
}

const char *view_barred(const struct view *v)
{
	if (!v->told)
		return "the scheduler does not know the cluster yet";
	return short_of(v, 0, VIEW_NEEDED);
}

const char *view_budgets_barred(const struct view *v)
{
	struct kube_reflector_state state;

	kube_reflector_state(v->parts[VIEW_BUDGETS].list, &state);
	if (!state.synced && !state.refused)
		return "the scheduler does not know the disruption budgets yet";
	return short_of(v, VIEW_BUDGETS, VIEW_KINDS);
}

/* ---- what could not be taken */

void view_missed(struct view *v, enum view_kind kind, const char *key)
{
	v->unread++;
	log_error("out of memory: an object is not seen", KV("object", key));
	v->parts[kind].missed = true;
	loop_timer_arm(v->again, AGAIN_MS);
}

static void on_again(void *arg)
{
	struct view *v = arg;

	for (size_t i = 0; i < VIEW_KINDS; i++) {
		struct view_part *p = &v->parts[i];
		if (!p->missed)
			continue;
		p->missed = false;
		p->again = true;
		kube_reflector_relist(p->list);
	}
}

void view_keys_changed(struct view *v)
{
	if (v->doubted == 0)
		return;
	view_pods_doubt_again(v);
	kube_reflector_relist(v->parts[VIEW_PODS].list);
}

/* ---- the fence */

static void forget_fence(struct view *v)
{
	free(HM_STEAL(v->fence.pod_key));
	free(HM_STEAL(v->fence.key));
	free(HM_STEAL(v->fence.mark));
	v->fence.at_list = false;
	loop_timer_disarm(v->fence_limit);
}

static void pass_fence(struct view *v)
{
	void (*passed)(void *arg) = HM_STEAL(v->fence.passed);

	forget_fence(v);
	if (passed != NULL)
		passed(v->fence.arg);
}

/* The watch tells writes in their order. A list tells objects in the order of their names, as of a moment after the
 * mark: with its last page all of before has been told, and not with ours. */
void view_fence_seen(struct view *v)
{
	struct kube_reflector_state state;

	kube_reflector_state(v->parts[VIEW_PODS].list, &state);
	if (!state.listing) {
		pass_fence(v);
		return;
	}
	forget_fence(v);
	v->fence.at_list = true;
}

static void pass_at_next_list(struct view *v)
{
	forget_fence(v);
	kube_reflector_relist(v->parts[VIEW_PODS].list);
	v->fence.at_list = true;
}

static void on_fence_limit(void *arg)
{
	pass_at_next_list(arg);
}

void view_listed(struct view *v, enum view_kind kind)
{
	v->parts[kind].again = false;
	if (kind == VIEW_PODS && v->fence.at_list)
		pass_fence(v);
}

int view_wait(struct view *v, const struct view_fence *f, struct hm_err *e)
{
	hm_auto_str key = { 0 };

	forget_fence(v);
	v->fence.passed = f->passed;
	v->fence.arg = f->arg;
	if (f->mark == NULL) {
		pass_at_next_list(v);
		return 0;
	}
	str_addf(&key, "%s/%s", f->name_space, f->pod);
	v->fence.pod_key = str_take(&key);
	v->fence.key = strdup(f->key);
	v->fence.mark = strdup(f->mark);
	if (v->fence.pod_key == NULL || v->fence.key == NULL || v->fence.mark == NULL) {
		forget_fence(v);
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
	v->began_ms = loop_now_ms(kube_client_loop(config->client));
	v->pods = map_new();
	v->nodes = map_new();
	if (v->pods == NULL || v->nodes == NULL)
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	if (limit_name(config->pods.memory, &v->memory_limit, e) < 0 ||
	    limit_name(config->pods.cores, &v->cores_limit, e) < 0 ||
	    loop_timer_new(kube_client_loop(config->client), on_fence_limit, v, &v->fence_limit, e) < 0 ||
	    loop_timer_new(kube_client_loop(config->client), on_again, v, &v->again, e) < 0 ||
	    view_nodes_begin(v, e) < 0 || view_quotas_begin(v, e) < 0 || view_budgets_begin(v, e) < 0 ||
	    view_pods_begin(v, e) < 0)
		return hm_err_wrap(e, "view");
	*out = HM_STEAL(v);
	return 0;
}

void view_free(struct view *v)
{
	if (v == NULL)
		return;
	for (size_t i = 0; i < VIEW_KINDS; i++)
		kube_reflector_free(v->parts[i].list);
	view_pods_end(v);
	view_nodes_end(v);
	view_budgets_end(v);
	if (v->fence_limit != NULL)
		forget_fence(v);
	loop_timer_free(v->fence_limit);
	loop_timer_free(v->again);
	free(v->memory_limit);
	free(v->cores_limit);
	free(v);
}

void view_stats(const struct view *v, struct view_stats *out)
{
	struct kube_reflector_state state;
	uint64_t now_ms = loop_now_ms(kube_client_loop(v->config.client));
	uint64_t *const silent[] = { &out->silent_ms.nodes, &out->silent_ms.pods, &out->silent_ms.quotas,
				     &out->silent_ms.budgets };

	*out = (struct view_stats) { .nodes = map_count(v->nodes),
				     .nodes_with_cards = v->with_cards,
				     .doubted = v->doubted,
				     .unread = v->unread };
	for (size_t i = 0; i < VIEW_KINDS; i++) {
		kube_reflector_state(v->parts[i].list, &state);
		out->failures += state.failures;
		*silent[i] = now_ms - HM_MAX(state.good_at_ms, v->began_ms);
		if (i == VIEW_PODS)
			out->pods_told = state.objects;
		if (i == VIEW_BUDGETS)
			out->without_budgets = state.refused;
	}
}
