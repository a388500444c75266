#include "agent/cluster/pod_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/fmt.h"
#include "kubelet/pod_resources.h"

struct holder {
	struct pod_lookup_found who;
	char **ids; /* owned */
	size_t id_count;
};

struct pod_lookup {
	struct loop *loop;
	const char *socket;
	char *resource;
	struct pod_resources_call *call;
	struct holder *holders;
	size_t count, cap;
	uint64_t listed_ms;    /* 0: never */
	struct hm_err trouble; /* of the last question; code 0: none */
};

static void forget(struct pod_lookup *p)
{
	for (size_t i = 0; i < p->count; i++) {
		for (size_t k = 0; k < p->holders[i].id_count; k++)
			free(p->holders[i].ids[k]);
		free(p->holders[i].ids);
	}
	p->count = 0;
}

static bool keep(struct pod_lookup *p, const struct pod_resources_container *c)
{
	struct holder h = { .ids = calloc(c->id_count + 1, sizeof *h.ids) };

	hm_fmt(h.who.name_space, sizeof h.who.name_space, "%s", c->pod_namespace);
	hm_fmt(h.who.pod, sizeof h.who.pod, "%s", c->pod);
	hm_fmt(h.who.container, sizeof h.who.container, "%s", c->container);
	if (h.ids == NULL || !HM_PUSH(p->holders, p->count, p->cap, h)) {
		free(h.ids);
		return false;
	}
	for (struct holder *at = &p->holders[p->count - 1]; at->id_count < c->id_count; at->id_count++) {
		at->ids[at->id_count] = strdup(c->ids[at->id_count]);
		if (at->ids[at->id_count] == NULL)
			return false;
	}
	return true;
}

static void on_list(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e)
{
	struct pod_lookup *p = arg;
	bool ok = true;

	forget(p);
	p->trouble = e != NULL ? *e : (struct hm_err) { 0 };
	for (size_t i = 0; e == NULL && ok && i < count; i++)
		ok = keep(p, &containers[i]);
	if (!ok)
		hm_err_set(&p->trouble, HM_ENOMEM, "the kubelet's list of pods");
	p->listed_ms = loop_now_ms(p->loop);
	pod_resources_free(HM_STEAL(p->call));
}

static int ask(struct pod_lookup *p, struct hm_err *e)
{
	if (p->call == NULL &&
	    pod_resources_list(p->loop, p->socket, p->resource, on_list, p, &p->call, &p->trouble) < 0)
		return hm_err_set(e, HM_EAGAIN, "the kubelet's list of pods: %s", p->trouble.msg);
	return hm_err_set(e, HM_EAGAIN, "the kubelet is being asked for its list of pods");
}

static bool has_set(const struct holder *h, const char *const *ids, size_t count)
{
	if (h->id_count != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t k = 0; k < count && !found; k++)
			found = strcmp(h->ids[k], ids[i]) == 0;
		if (!found)
			return false;
	}
	return true;
}

int pod_lookup_find(struct pod_lookup *p, const char *const *ids, size_t count, struct pod_lookup_found *out,
		    struct hm_err *e)
{
	const struct holder *found = NULL;

	if (p->listed_ms == 0 || loop_now_ms(p->loop) - p->listed_ms > POD_LOOKUP_FRESH_MS)
		return ask(p, e);
	if (p->trouble.code != 0)
		return hm_err_set(e, HM_EAGAIN, "the kubelet's list of pods: %s", p->trouble.msg);
	for (size_t i = 0; i < p->count; i++) {
		if (!has_set(&p->holders[i], ids, count))
			continue;
		if (found != NULL)
			return hm_err_set(e, HM_EAGAIN,
					  "the kubelet lists several containers with exactly these "
					  "devices");
		found = &p->holders[i];
	}
	if (found == NULL)
		return hm_err_set(e, HM_EAGAIN, "the kubelet lists nobody with exactly these devices");
	*out = found->who;
	return 0;
}

int pod_lookup_new(struct loop *l, const char *socket, const char *resource, struct pod_lookup **out, struct hm_err *e)
{
	hm_auto(pod_lookup) *p = calloc(1, sizeof *p);

	if (p == NULL || (p->resource = strdup(resource)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "the kubelet's list of pods");
	p->loop = l;
	p->socket = socket;
	*out = HM_STEAL(p);
	return 0;
}

void pod_lookup_free(struct pod_lookup *p)
{
	if (p == NULL)
		return;
	pod_resources_free(p->call);
	forget(p);
	free(p->holders);
	free(p->resource);
	free(p);
}
