#include "base/log.h"
#include "sched/view/budget_read.h"
#include "sched/view/view_internal.h"

static struct budgets *budgets_of(const struct view *v)
{
	return cluster_budgets(v->config.cluster);
}

/* Its status changes often. Where memory is short it is told of again. */
static void warn_once(struct view *v, const struct kube_object *o, const struct hm_err *why)
{
	void *told;

	if (map_put(v->no_budgets, o->uid, v, &told) < 0 || told == NULL)
		log_warn("a disruption budget counts for nobody", KV("budget", o->key), KV_ERR(why));
}

static void on_changed(void *arg, const struct kube_object *o)
{
	struct view *v = arg;
	hm_auto_budget_read b = { 0 };
	struct hm_err e = { 0 };
	int r = budget_read(o->tree, &b, &e);

	if (r > 0)
		r = budgets_set(budgets_of(v), o->name_space, o->name, &b.terms, &e);
	else if (r != -HM_ENOMEM)
		budgets_remove(budgets_of(v), o->name_space, o->name);
	if (r == -HM_ENOMEM)
		view_missed(v, VIEW_BUDGETS, o->key);
	else if (r < 0)
		warn_once(v, o, &e);
	else
		map_remove(v->no_budgets, o->uid);
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	struct view *v = arg;

	budgets_remove(budgets_of(v), o->name_space, o->name);
	map_remove(v->no_budgets, o->uid);
}

static void on_listed(void *arg)
{
	view_listed(arg, VIEW_BUDGETS);
}

int view_budgets_begin(struct view *v, struct hm_err *e)
{
	const struct kube_reflector_events events = {
		.changed = on_changed, .deleted = on_deleted, .listed = on_listed, .arg = v
	};
	const struct kube_reflector_options options = { .path = "/apis/policy/v1/poddisruptionbudgets",
							.optional = true,
							.page = v->config.page };

	v->no_budgets = map_new();
	if (v->no_budgets == NULL)
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	return kube_reflector_new(v->config.client, &options, &events, &v->parts[VIEW_BUDGETS].list, e);
}

void view_budgets_end(struct view *v)
{
	map_free(v->no_budgets);
}
