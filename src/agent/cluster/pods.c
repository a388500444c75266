#include "agent/cluster/pods.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "core/num.h"
#include "kube/reflector.h"

/* A pod is told to us when it is bound here, so the order of telling is that of binding; the first list comes in no
 * order, and of its pods the annotation counts. */
#define AFTER_THE_LIST (UINT64_C(1) << 62)

struct pods {
	char *resource;
	struct kube_reflector *reflector;
	struct map *by_uid; /* struct pod_view, owned */
	struct link listeners;
	uint64_t told;
	bool synced;
	uint64_t unread;
};

/* ---- changes */

static uint64_t order_of(struct pods *p, const struct pod_view *v)
{
	uint64_t seconds = 0;

	if (p->synced)
		return AFTER_THE_LIST + p->told++;
	if (!num_u64_str(pod_view_text(v, POD_BIND_TIME), AFTER_THE_LIST - 1, &seconds))
		return 0;
	return seconds;
}

static void tell_changed(struct pods *p, const struct pod_view *v)
{
	LIST_FOR_EACH (&p->listeners, it) {
		struct pods_listener *l = HM_CONTAINER(it, struct pods_listener, link);

		l->changed(l->arg, v);
	}
}

static void drop(struct pods *p, const char *uid)
{
	struct pod_view *v = map_remove(p->by_uid, uid);

	if (v == NULL)
		return;
	LIST_FOR_EACH (&p->listeners, it) {
		struct pods_listener *l = HM_CONTAINER(it, struct pods_listener, link);

		l->gone(l->arg, v);
	}
	pod_view_free(v);
}

static void on_changed(void *arg, const struct kube_object *o)
{
	struct pods *p = arg;
	struct pod_view *fresh = NULL;
	void *old = NULL;
	struct hm_err e;

	if (pod_view_new(o, p->resource, &fresh, &e) < 0) {
		p->unread++;
		log_warn("a pod of this node is not taken", KV("pod", o->key), KV_ERR(&e));
		return;
	}
	old = map_get(p->by_uid, fresh->uid);
	fresh->order = old != NULL ? ((struct pod_view *)old)->order : order_of(p, fresh);
	if (map_put(p->by_uid, fresh->uid, fresh, &old) < 0) {
		p->unread++;
		log_error("out of memory: a change of a pod is not seen", KV("pod", o->key));
		pod_view_free(fresh);
		return;
	}
	pod_view_free(old);
	tell_changed(p, fresh);
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	drop(arg, o->uid);
}

static void on_synced(void *arg)
{
	struct pods *p = arg;

	p->synced = true;
	log_info("the pods of this node are known", KV_U64("pods", map_count(p->by_uid)));
	LIST_FOR_EACH (&p->listeners, it) {
		struct pods_listener *l = HM_CONTAINER(it, struct pods_listener, link);

		if (l->synced != NULL)
			l->synced(l->arg);
	}
}

/* ---- questions */

bool pods_synced(const struct pods *p)
{
	return p->synced;
}

const struct pod_view *pods_find(const struct pods *p, const char *uid)
{
	return map_get(p->by_uid, uid);
}

const struct pod_view *pods_find_name(const struct pods *p, const char *name_space, const char *name)
{
	const struct pod_view *v;
	size_t at = 0;

	while ((v = pods_next(p, &at)) != NULL)
		if (strcmp(v->name, name) == 0 && strcmp(v->name_space, name_space) == 0)
			return v;
	return NULL;
}

const struct pod_view *pods_next(const struct pods *p, size_t *at)
{
	const char *uid;
	void *v;

	return map_next(p->by_uid, at, &uid, &v) ? v : NULL;
}

void pods_listen(struct pods *p, struct pods_listener *listener)
{
	link_append(&p->listeners, &listener->link);
}

void pods_stats(const struct pods *p, struct pods_stats *out)
{
	struct kube_reflector_state state;

	kube_reflector_state(p->reflector, &state);
	*out = (struct pods_stats) { map_count(p->by_uid), p->unread, state.failures, state.good_at_ms };
}

/* ---- life */

int pods_new(struct kube_client *client, const char *node, const char *resource, struct pods **out, struct hm_err *e)
{
	hm_auto(pods) *p = calloc(1, sizeof *p);
	hm_auto_str selector = { 0 };
	struct kube_reflector_events events = { on_changed, on_deleted, on_synced, p };
	struct kube_reflector_options options = { .path = "/api/v1/pods", .cached = true };

	if (p == NULL || (p->by_uid = map_new()) == NULL || (p->resource = strdup(resource)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "pods of this node");
	list_init(&p->listeners);
	str_addf(&selector, "spec.nodeName=%s", node);
	if (str_failed(&selector))
		return hm_err_set(e, HM_ENOMEM, "pods of this node");
	options.field_selector = str_text(&selector);
	if (kube_reflector_new(client, &options, &events, &p->reflector, e) < 0)
		return hm_err_wrap(e, "pods of this node");
	*out = HM_STEAL(p);
	return 0;
}

void pods_free(struct pods *p)
{
	const char *uid;
	size_t at = 0;
	void *v;

	if (p == NULL)
		return;
	kube_reflector_free(p->reflector);
	while (p->by_uid != NULL && map_next(p->by_uid, &at, &uid, &v))
		pod_view_free(v);
	map_free(p->by_uid);
	free(p->resource);
	free(p);
}
