#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "sched/view/budget_read.h"
#include "sched/view/host_read.h"
#include "sched/view/view_internal.h"

/* Pods that ended hold nothing: not listed, and told as deleted when they do. */
static const char selector[] = "status.phase!=Succeeded,status.phase!=Failed";

/* All that pod_hold_read takes from it but its containers, which never change, and what print_beside is of. To verify a
 * signature costs more than all else, and a pod's status changes often. */
static uint64_t print_of(const struct cJSON *pod)
{
	static const char *const keys[] = { HAMI_POD_NODE, HAMI_POD_TIME, HAMI_POD_ALLOCATED, HAMI_POD_MIG_ALLOCATIONS,
					    HAMI_POD_SIGNATURE };
	uint64_t print = fnv_text(FNV_BEGIN, pod_node(pod));

	for (size_t i = 0; i < HM_COUNT(keys); i++)
		print = fnv_text(print, pod_annotation(pod, keys[i]));
	return print | 1; /* 0: what is not known yet */
}

/* Of what no signature is for: who believes a pod need not ask again, as the key may have been taken away since. */
static uint64_t print_beside(const struct cJSON *pod)
{
	uint64_t print = fnv_text(FNV_BEGIN, pod_is_terminating(pod) ? "terminating" : "");
	const struct cJSON *label;

	cJSON_ArrayForEach(label, pod_member(pod_member(pod, "metadata"), "labels"))
	{
		print = fnv_text(print, label->string);
		print = fnv_text(print, cJSON_GetStringValue(label));
	}
	return print;
}

/* ---- what it holds */

/* Of what the pod holds now. */
static void doubt(struct view *v, struct pod_row *row, const char *uid, const struct hm_err *why)
{
	const struct holding *h = cluster_find(v->config.cluster, uid);
	const struct kube_event_object about = { "v1", "Pod", cluster_holding_space(h), h->name, uid };
	bool first = !row->doubted;
	hm_auto_str text = { 0 }, key = { 0 };

	v->doubted += (size_t)(why->code != 0) - (size_t)row->doubted;
	row->doubted = why->code != 0;
	if (!row->doubted || !first)
		return;
	str_addf(&key, "%s/%s", about.name_space, about.name);
	str_addf(&text, "%s%s", why->msg,
		 h->unreadable ? "; counted as the most that it could hold on any card of its node" : "");
	log_warn("a pod's placement is doubted", KV("pod", str_text(&key)), KV("why", str_text(&text)));
	if (v->config.events != NULL && !str_failed(&text))
		kube_events_tell(v->config.events, &about, "Warning", "PlacementDoubted", str_text(&text));
}

static void release(struct view *v, const char *uid)
{
	struct pod_row *row = map_remove(v->pods, uid);

	if (row != NULL)
		v->doubted -= row->doubted;
	free(row);
	cluster_release(v->config.cluster, uid);
}

static struct pod_row *add_row(struct view *v, const char *uid)
{
	struct pod_row *row = calloc(1, sizeof *row);

	if (row == NULL || map_put(v->pods, uid, row, NULL) < 0) {
		free(row);
		return NULL;
	}
	return row;
}

static int hold_the_most(struct view *v, const struct holding *h, const struct view_bad *c)
{
	const struct hold hold = { .uid = c->uid,
				   .name_space = cluster_holding_space(h),
				   .name = h->name,
				   .node = cluster_holding_node(h),
				   .state = h->state,
				   .priority = h->priority,
				   .labels = h->labels != NULL ? h->labels->text : NULL,
				   .unreadable = true,
				   .asks = c->asks,
				   .ask_count = c->ask_count };

	return cluster_hold(v->config.cluster, &hold, NULL);
}

/* `row`: NULL where it held nothing. Where the node has no cards of ours, a pod that nobody told of may have another
 * plugin's: it is held, in case they come, and not talked of. */
static int take_hold(struct view *v, const struct kube_object *o, struct pod_row *row, uint64_t print, struct hm_err *e)
{
	const struct pod_trust trust = { v->config.trust.keys, v->config.trust.warn,
					 v->verify != NULL && !v->parts[VIEW_PODS].synced };
	hm_auto_pod_hold h = { 0 };
	int err = pod_hold_read(o->tree, &v->config.pods, &trust, &h, e);
	bool first = row == NULL;

	if (err < 0 || !h.holds)
		return err == -HM_ENOMEM ? err : 0;
	if (first)
		row = add_row(v, o->uid);
	if (row == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s: out of memory", o->key);
	err = cluster_hold(v->config.cluster, &h.hold, e);
	if (err == -HM_EINVAL) {
		pod_hold_doubt(&h, e);
		err = cluster_hold(v->config.cluster, &h.hold, e);
	}
	if (err == 0 && first && h.doubt.code == 0 && v->config.bound != NULL)
		v->config.bound(v->config.arg, &h.ask);
	if (err == 0 && h.check.key != NULL)
		err = view_verify_add(v->verify, &h, print, e);
	if (err < 0)
		return err;
	row->print = print;
	row->beside = print_beside(o->tree);
	if (pod_is_told(o->tree) || cluster_node(v->config.cluster, h.hold.node) != NULL)
		doubt(v, row, o->uid, &h.doubt);
	return 0;
}

static int take_beside(struct view *v, const struct kube_object *o, struct pod_row *row, struct hm_err *e)
{
	uint64_t print = print_beside(o->tree);
	hm_auto_str labels = { 0 };

	if (print == row->beside)
		return 0;
	pod_labels_read(o->tree, &labels);
	if (str_failed(&labels))
		return hm_err_set(e, HM_ENOMEM, "%s: out of memory", o->key);
	if (cluster_amend(v->config.cluster, o->uid, pod_is_terminating(o->tree), str_text(&labels), e) < 0)
		return -HM_ENOMEM;
	row->beside = print;
	return 0;
}

/* Of most pods nothing is known but what they have of their node's CPU and memory. Of a pod that we know to hold cards,
 * what is no longer said is still so. */
static void take_pod(struct view *v, const struct kube_object *o)
{
	const char *node = pod_node(o->tree);
	struct pod_row *row;
	uint64_t print;
	struct hm_err e = { 0 };

	if (node == NULL)
		return;
	cluster_seen(v->config.cluster, o->uid);
	if (cluster_take_host(v->config.cluster, o->uid, node, host_of_pod(o->tree), &e) < 0) {
		view_missed(v, VIEW_PODS, o->key);
		return;
	}
	row = map_get(v->pods, o->uid);
	if (row != NULL && take_beside(v, o, row, &e) < 0) {
		view_missed(v, VIEW_PODS, o->key);
		return;
	}
	if (!pod_is_told(o->tree) && (!pod_runs(o->tree) || cluster_find(v->config.cluster, o->uid) != NULL))
		return;
	print = print_of(o->tree);
	if ((row == NULL || row->print != print) && take_hold(v, o, row, print, &e) < 0)
		view_missed(v, VIEW_PODS, o->key);
}

/* It was believed until now. */
static void on_bad(void *arg, const struct view_bad *c, const struct hm_err *e)
{
	struct view *v = arg;
	struct pod_row *row = map_get(v->pods, c->uid);
	const struct holding *h = cluster_find(v->config.cluster, c->uid);
	struct hm_err why = *e;

	if (row == NULL || row->print != c->print || h == NULL)
		return;
	if (why.code == HM_ENOMEM || hold_the_most(v, h, c) < 0) {
		row->print = 0;
		view_missed(v, VIEW_PODS, c->uid);
		return;
	}
	hm_err_wrap(&why, POD_NOT_SIGNED);
	doubt(v, row, c->uid, &why);
}

static void on_idle(void *arg)
{
	view_settle(arg);
}

void view_pods_doubt_again(struct view *v)
{
	size_t at = 0;
	void *value;

	while (map_next(v->pods, &at, NULL, &value)) {
		struct pod_row *row = value;
		if (row->doubted)
			row->print = 0;
	}
}

/* ---- told */

static void on_changed(void *arg, const struct kube_object *o)
{
	struct view *v = arg;
	const char *mark;

	if (pod_has_ended(o->tree))
		release(v, o->uid);
	else
		take_pod(v, o);
	if (v->fence.pod_key == NULL || strcmp(v->fence.pod_key, o->key) != 0)
		return;
	mark = pod_annotation(o->tree, v->fence.key);
	if (mark != NULL && strcmp(mark, v->fence.mark) == 0)
		view_fence_seen(v);
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	release(arg, o->uid);
}

static void on_synced(void *arg)
{
	struct view *v = arg;

	if (v->verify != NULL)
		view_verify_flush(v->verify);
	view_synced(v, VIEW_PODS);
}

static void on_lists(void *arg)
{
	const struct view *v = arg;

	cluster_list_begins(v->config.cluster);
}

static void on_listed(void *arg)
{
	struct view *v = arg;
	size_t gone = cluster_list_ended(v->config.cluster);

	if (gone > 0)
		log_info("pods were bound and gone while nobody told of them", KV_U64("pods", gone));
	view_listed(v, VIEW_PODS);
}

int view_pods_begin(struct view *v, struct hm_err *e)
{
	const struct view_verify_events verified = { on_bad, on_idle, v };
	const struct kube_reflector_events events = {
		.changed = on_changed,
		.deleted = on_deleted,
		.synced = on_synced,
		.arg = v,
		.lists = on_lists,
		.listed = on_listed,
	};
	const struct kube_reflector_options options = { .path = "/api/v1/pods",
							.field_selector = selector,
							.page = v->config.page };

	if (v->config.trust.keys != NULL &&
	    view_verify_new(kube_client_loop(v->config.client), &verified, &v->verify, e) < 0)
		return -e->code;
	return kube_reflector_new(v->config.client, &options, &events, &v->parts[VIEW_PODS].list, e);
}

void view_pods_end(struct view *v)
{
	const char *uid;
	size_t at = 0;
	void *row;

	view_verify_free(v->verify);
	while (v->pods != NULL && map_next(v->pods, &at, &uid, &row))
		free(row);
	map_free(v->pods);
}
