#include "agent/hami/pod_finish.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "kube/patch.h"
#include "kube/url.h"

enum want { WANT_FAILURE, WANT_SUCCESS };

struct item {
	struct pod_finish *of;
	char uid[POD_UID_BYTES];
	enum want want;
	bool done; /* the server took it; stays, so that a restart before the watch's word patches nothing */
	struct kube_call *call;
	struct kube_backoff backoff;
	uint64_t not_before_ms;
};

struct pod_finish {
	struct pod_finish_config config;
	struct loop_timer *timer;
	struct map *items; /* by UID; owned */
	struct pods_listener listener;
	struct pod_finish_stats stats;
};

static uint64_t now_ms(const struct pod_finish *f)
{
	return loop_now_ms(kube_client_loop(f->config.client));
}

/* ---- what is to be said */

void pod_finish_erased(const char *to_allocate, struct str *out)
{
	str_addc(out, ';');
	for (const char *p = to_allocate; *p != '\0'; p++)
		if (*p == ';')
			str_addc(out, ';');
}

static bool is_erased(const struct pod_view *v)
{
	const char *text = pod_view_text(v, POD_TO_ALLOCATE);

	return text[strspn(text, ";")] == '\0';
}

static bool is_needed(const struct pod_view *v, enum want want)
{
	const char *phase = pod_view_text(v, POD_BIND_PHASE);
	bool success = strcmp(phase, HAMI_PHASE_SUCCESS) == 0;

	if (want == WANT_FAILURE)
		return !success && strcmp(phase, HAMI_PHASE_FAILED) != 0;
	return !success || !is_erased(v);
}

static int make_body(const struct pod_view *v, enum want want, char **out, struct hm_err *e)
{
	struct kube_patch_value values[2] = {
		{ HAMI_POD_BIND_PHASE, want == WANT_SUCCESS ? HAMI_PHASE_SUCCESS : HAMI_PHASE_FAILED },
	};
	struct kube_patch patch = { .uid = v->uid, .annotations = values, .annotation_count = 1 };
	hm_auto_str erased = { 0 };

	if (want == WANT_SUCCESS && v->annotations[POD_TO_ALLOCATE] != NULL) {
		pod_finish_erased(v->annotations[POD_TO_ALLOCATE], &erased);
		if (str_failed(&erased))
			return hm_err_set(e, HM_ENOMEM, "patch a pod");
		values[patch.annotation_count++] =
			(struct kube_patch_value) { HAMI_POD_TO_ALLOCATE, str_text(&erased) };
	}
	return kube_patch_text(&patch, out, e);
}

/* ---- sending */

static void drop(struct item *it)
{
	kube_call_cancel(it->call);
	map_remove(it->of->items, it->uid);
	free(it);
}

static void try_later(struct item *it)
{
	it->not_before_ms = now_ms(it->of) + kube_backoff_next(&it->backoff, kube_random());
	loop_timer_arm(it->of->timer, POD_FINISH_LOOK_MS);
}

/* What answers 200 without the pod (something between us and the API server) has patched nothing. */
static bool is_the_pod(const struct kube_answer *a, const char *uid, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct kube_object o;

	if (json_parse(a->body, a->n, &tree, e) < 0 || kube_object_read(tree, &o, e) < 0)
		return false;
	if (strcmp(o.uid, uid) != 0)
		hm_err_set(e, HM_EPROTO, "the answer is another object: %s", o.uid);
	return strcmp(o.uid, uid) == 0;
}

static void on_answer(void *arg, const struct kube_answer *a)
{
	struct item *it = arg;
	struct hm_err e = a->err;

	it->call = NULL;
	if (a->status.outcome == KUBE_NOT_FOUND) {
		it->of->stats.dropped++;
		log_v(1, "a pod that was to be patched is gone", KV("pod_uid", it->uid), KV_ERR(&a->err));
		it->done = true; /* until the watch says so too */
		return;
	}
	/* Another pod has its name, which the watch will tell, or the server gave up among other writers. */
	if (a->status.outcome == KUBE_CONFLICT) {
		log_v(1, "a pod was not patched; trying again while the watch has it", KV("pod_uid", it->uid),
		      KV_ERR(&a->err));
		try_later(it);
		return;
	}
	if (a->status.outcome != KUBE_DONE || !is_the_pod(a, it->uid, &e)) {
		log_warn("cannot tell the scheduler that a pod has its devices; trying again", KV("pod_uid", it->uid),
			 KV_ERR(&e));
		try_later(it);
		return;
	}
	it->of->stats.patches++;
	it->done = true;
}

static int send(struct item *it, const struct pod_view *v, struct hm_err *e)
{
	const struct kube_events_of_call events = { .done = on_answer, .arg = it };
	hm_auto_heap char *body = NULL;
	hm_auto_str path = { 0 };

	if (make_body(v, it->want, &body, e) < 0)
		return -e->code;
	kube_url_add_path(&path, "/api/v1", v->name_space, "pods", v->name);
	if (str_failed(&path))
		return hm_err_set(e, HM_ENOMEM, "patch a pod");
	const struct kube_request request = { .verb = KUBE_PATCH,
					      .path = str_text(&path),
					      .content_type = KUBE_MERGE_PATCH,
					      .body = body,
					      .n = strlen(body) };
	return kube_client_call(it->of->config.client, &request, &events, &it->call, e);
}

static void look_at(struct item *it)
{
	const struct pod_view *v = pods_find(it->of->config.pods, it->uid);
	struct hm_err e;

	if (it->done || it->call != NULL || v == NULL || now_ms(it->of) < it->not_before_ms)
		return;
	if (!is_needed(v, it->want)) {
		it->done = true;
		return;
	}
	if (it->backoff.tries > 0)
		it->of->stats.retries++;
	if (send(it, v, &e) == 0)
		return;
	log_warn("cannot patch a pod; trying again", KV("pod_uid", it->uid), KV_ERR(&e));
	try_later(it);
}

static void on_timer(void *arg)
{
	struct pod_finish *f = arg;
	const char *uid;
	void *it;
	size_t at = 0;
	bool waiting = false;

	while (map_next(f->items, &at, &uid, &it)) {
		look_at(it);
		waiting |= !((struct item *)it)->done && ((struct item *)it)->call == NULL;
	}
	if (waiting)
		loop_timer_arm(f->timer, POD_FINISH_LOOK_MS);
}

static void want(struct pod_finish *f, const char *uid, enum want what)
{
	struct item *it = map_get(f->items, uid);

	if (it == NULL) {
		it = calloc(1, sizeof *it);
		if (it == NULL || map_put(f->items, uid, it, NULL) < 0) {
			free(it);
			log_error("out of memory: a pod is not patched", KV("pod_uid", uid));
			return;
		}
		it->of = f;
		it->want = what;
		it->backoff = (struct kube_backoff) { POD_FINISH_RETRY_MS, POD_FINISH_RETRY_MAX_MS, 0 };
		hm_fmt(it->uid, sizeof it->uid, "%s", uid);
	} else if (what > it->want) {
		kube_call_cancel(HM_STEAL(it->call)); /* the failure may arrive or not: the success comes behind it */
		it->want = what;
		it->done = false;
		it->not_before_ms = 0;
		kube_backoff_reset(&it->backoff);
	}
	look_at(it);
}

void pod_finish_success(struct pod_finish *f, const char *uid)
{
	want(f, uid, WANT_SUCCESS);
}

void pod_finish_failure(struct pod_finish *f, const char *uid)
{
	want(f, uid, WANT_FAILURE);
}

/* ---- what was missed */

static bool was_started(const struct pod_finish *f, const char *uid)
{
	for (size_t i = 0; i < claims_count(f->config.claims); i++) {
		const struct claim *c = claims_at(f->config.claims, i);

		if (c->state == CLAIM_ACTIVE && strcmp(c->pod_uid, uid) == 0 &&
		    strcmp(c->resource, f->config.resource) == 0)
			return true;
	}
	return false;
}

static void on_pod_changed(void *arg, const struct pod_view *v)
{
	struct pod_finish *f = arg;
	struct item *it = map_get(f->items, v->uid);

	if (it != NULL)
		look_at(it); /* it may have been waiting for the pod to be told */
	else if (is_needed(v, WANT_SUCCESS) && was_started(f, v->uid))
		pod_finish_success(f, v->uid);
}

static void on_pod_gone(void *arg, const struct pod_view *v)
{
	struct pod_finish *f = arg;
	struct item *it = map_get(f->items, v->uid);

	if (it != NULL)
		drop(it);
}

/* ---- life */

void pod_finish_stats(const struct pod_finish *f, struct pod_finish_stats *out)
{
	const char *uid;
	size_t at = 0;
	void *it;

	*out = f->stats;
	while (map_next(f->items, &at, &uid, &it))
		out->waiting += !((const struct item *)it)->done;
}

int pod_finish_new(const struct pod_finish_config *config, struct pod_finish **out, struct hm_err *e)
{
	hm_auto(pod_finish) *f = calloc(1, sizeof *f);

	if (f == NULL || (f->items = map_new()) == NULL)
		return hm_err_set(e, HM_ENOMEM, "pod patches");
	f->config = *config;
	if (loop_timer_new(kube_client_loop(config->client), on_timer, f, &f->timer, e) < 0)
		return hm_err_wrap(e, "pod patches");
	f->listener = (struct pods_listener) { .changed = on_pod_changed, .gone = on_pod_gone, .arg = f };
	pods_listen(config->pods, &f->listener);
	*out = HM_STEAL(f);
	return 0;
}

void pod_finish_free(struct pod_finish *f)
{
	const char *uid;
	size_t at = 0;
	void *it;

	if (f == NULL)
		return;
	link_remove(&f->listener.link);
	while (f->items != NULL && map_next(f->items, &at, &uid, &it)) {
		kube_call_cancel(((struct item *)it)->call);
		free(it);
	}
	map_free(f->items);
	loop_timer_free(f->timer);
	free(f);
}
