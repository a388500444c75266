#include "agent/hami/mig_tell.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/mig_text.h"
#include "io/json.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "kube/patch.h"
#include "kube/url.h"

struct item {
	struct mig_tell *of;
	char uid[POD_UID_BYTES];
	struct str path;
	struct kube_call *call;
	struct kube_backoff backoff;
	uint64_t not_before_ms;
	bool again; /* more was made while a call was under way */
};

struct mig_tell {
	struct kube_client *client;
	struct mig_holds *holds;
	struct loop_timer *timer;
	struct map *items; /* by pod UID; owned */
	struct mig_tell_stats stats;
};

static uint64_t now_ms(const struct mig_tell *t)
{
	return loop_now_ms(kube_client_loop(t->client));
}

static void drop(struct item *it)
{
	kube_call_cancel(it->call);
	map_remove(it->of->items, it->uid);
	str_fini(&it->path);
	free(it);
}

static void try_later(struct item *it)
{
	uint32_t wait = kube_backoff_next(&it->backoff, kube_random());

	it->of->stats.retries++;
	it->not_before_ms = now_ms(it->of) + wait;
	loop_timer_arm(it->of->timer, wait);
}

static bool is_gone(const struct kube_answer *a)
{
	return a->status.outcome == KUBE_NOT_FOUND;
}

/* ---- the text */

/* Fills in what is ready; false: nothing is new in it. */
static bool fill(struct mig_tell *t, const char *uid, struct mig_allocations *records)
{
	bool changed = false;

	for (size_t i = 0; i < records->count; i++) {
		struct mig_record *r = &records->records[i];
		const struct mig_hold *hold = mig_holds_find(t->holds, uid, r->container, r->device);

		if (hold == NULL || !hold->ready || hold->over || strcmp(hold->gpu_uuid, r->gpu_uuid) != 0 ||
		    hold->at.start != r->start || hold->at.size != r->size)
			continue;
		if (r->made && strcmp(r->mig_uuid, hold->made.uuid) == 0 && r->gpu_instance == hold->made.gi &&
		    r->compute_instance == hold->made.ci)
			continue;
		hm_fmt(r->mig_uuid, sizeof r->mig_uuid, "%s", hold->made.uuid);
		r->gpu_instance = hold->made.gi;
		r->compute_instance = hold->made.ci;
		r->made = changed = true;
	}
	return changed;
}

/* *body NULL: nothing is to be written. */
static int make_body(struct item *it, const struct kube_answer *a, char **body, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto_mig_allocations records = { 0 };
	hm_auto_str text = { 0 };
	struct json_at root, meta, annotations;
	struct kube_object pod;
	const char *old = NULL;

	*body = NULL;
	if (json_parse(a->body, a->n, &tree, e) < 0 || kube_object_read(tree, &pod, e) < 0)
		return -e->code;
	root = json_root(tree);
	if (json_object(&root, "metadata", JSON_REQUIRED, &meta, e) < 0 ||
	    json_object(&meta, "annotations", JSON_OPTIONAL, &annotations, e) < 0 ||
	    json_text(&annotations, HAMI_POD_MIG_ALLOCATIONS, JSON_OPTIONAL, &old, e) < 0 ||
	    mig_text_parse(old, &records, e) < 0)
		return -e->code;
	if (strcmp(pod.uid, it->uid) != 0 || !fill(it->of, it->uid, &records))
		return 0;
	mig_text_write(&records, &text);
	if (str_failed(&text))
		return hm_err_set(e, HM_ENOMEM, "MIG allocations");
	const struct kube_patch_value value = { HAMI_POD_MIG_ALLOCATIONS, str_text(&text) };
	const struct kube_patch patch = {
		.uid = pod.uid, .resource_version = pod.resource_version, .annotations = &value, .annotation_count = 1
	};
	return kube_patch_text(&patch, body, e);
}

/* ---- reading and writing */

static void look_at(struct item *it);

static void finish(struct item *it)
{
	if (!it->again) {
		drop(it);
		return;
	}
	it->again = false;
	kube_backoff_reset(&it->backoff);
	look_at(it);
}

static void on_patched(void *arg, const struct kube_answer *a)
{
	struct item *it = arg;

	it->call = NULL;
	if (a->status.outcome == KUBE_DONE) {
		it->of->stats.patches++;
		finish(it);
	} else if (is_gone(a)) {
		drop(it);
	} else {
		it->of->stats.conflicts += a->status.outcome == KUBE_CONFLICT;
		log_v(1, "a pod's MIG devices are not written yet; trying again", KV("pod_uid", it->uid),
		      KV_ERR(&a->err));
		try_later(it);
	}
}

static int ask(struct item *it, enum kube_verb verb, const char *body,
	       void (*done)(void *arg, const struct kube_answer *a), struct hm_err *e)
{
	const struct kube_events_of_call events = { .done = done, .arg = it };
	const struct kube_request request = { .verb = verb,
					      .path = str_text(&it->path),
					      .content_type = body != NULL ? KUBE_MERGE_PATCH : NULL,
					      .body = body,
					      .n = body != NULL ? strlen(body) : 0 };

	return kube_client_call(it->of->client, &request, &events, &it->call, e);
}

static void on_read(void *arg, const struct kube_answer *a)
{
	struct item *it = arg;
	hm_auto_heap char *body = NULL;
	struct hm_err e = a->err;

	it->call = NULL;
	if (is_gone(a)) {
		drop(it);
		return;
	}
	if (a->status.outcome == KUBE_DONE && make_body(it, a, &body, &e) == 0) {
		if (body == NULL)
			finish(it);
		else if (ask(it, KUBE_PATCH, body, on_patched, &e) < 0)
			try_later(it);
		return;
	}
	log_warn("cannot write a pod's MIG devices; trying again", KV("pod_uid", it->uid), KV_ERR(&e));
	try_later(it);
}

static void look_at(struct item *it)
{
	struct hm_err e;

	if (it->call != NULL || now_ms(it->of) < it->not_before_ms)
		return;
	if (ask(it, KUBE_GET, NULL, on_read, &e) < 0) {
		log_warn("cannot read a pod; trying again", KV("pod_uid", it->uid), KV_ERR(&e));
		try_later(it);
	}
}

static void on_timer(void *arg)
{
	struct mig_tell *t = arg;
	uint64_t next = UINT64_MAX, now = now_ms(t);
	const char *uid;
	size_t at = 0;
	void *it;

	while (map_next(t->items, &at, &uid, &it)) {
		look_at(it);
		if (((struct item *)it)->call == NULL)
			next = HM_MIN(next, ((struct item *)it)->not_before_ms);
	}
	if (next != UINT64_MAX)
		loop_timer_arm(t->timer, next > now ? (uint32_t)(next - now) : 1);
}

void mig_tell_pod(struct mig_tell *t, const struct mig_hold *hold)
{
	struct item *it = map_get(t->items, hold->pod_uid);

	if (it != NULL) {
		it->again = true;
		return;
	}
	it = calloc(1, sizeof *it);
	if (it != NULL) {
		*it = (struct item) { .of = t, .backoff = { MIG_TELL_RETRY_MS, MIG_TELL_RETRY_MAX_MS, 0 } };
		hm_fmt(it->uid, sizeof it->uid, "%s", hold->pod_uid);
		kube_url_add_path(&it->path, "/api/v1", hold->name_space, "pods", hold->pod);
	}
	if (it == NULL || str_failed(&it->path) || map_put(t->items, it->uid, it, NULL) < 0) {
		if (it != NULL)
			str_fini(&it->path);
		free(it);
		log_error("out of memory: a pod's MIG devices are not written", KV("pod", hold->pod));
		return;
	}
	look_at(it);
}

void mig_tell_stats(const struct mig_tell *t, struct mig_tell_stats *out)
{
	*out = t->stats;
	out->waiting = map_count(t->items);
}

int mig_tell_new(struct kube_client *client, struct mig_holds *holds, struct mig_tell **out, struct hm_err *e)
{
	hm_auto(mig_tell) *t = calloc(1, sizeof *t);

	if (t == NULL || (t->items = map_new()) == NULL)
		return hm_err_set(e, HM_ENOMEM, "MIG allocations");
	t->client = client;
	t->holds = holds;
	if (loop_timer_new(kube_client_loop(client), on_timer, t, &t->timer, e) < 0)
		return hm_err_wrap(e, "MIG allocations");
	*out = HM_STEAL(t);
	return 0;
}

void mig_tell_free(struct mig_tell *t)
{
	const char *uid;
	size_t at = 0;
	void *it;

	if (t == NULL)
		return;
	while (t->items != NULL && map_next(t->items, &at, &uid, &it))
		drop(it);
	map_free(t->items);
	loop_timer_free(t->timer);
	free(t);
}
