#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "kube/binding.h"
#include "kube/url.h"
#include "sched/bind/bind_internal.h"
#include "sched/bind/bind_marks.h"

/* A Binding of which nothing was heard may still be on its way for so long after it was sent. */
enum { POST_MS = 10000, SETTLE_MS = 2 * POST_MS };

/* ---- ends */

void job_free(struct job *j)
{
	if (j == NULL)
		return;
	link_remove(&j->link);
	kube_call_cancel(j->call);
	lock_take_cancel(j->lock);
	loop_timer_free(j->again);
	loop_timer_free(j->answer);
	str_fini(&j->path);
	str_fini(&j->body);
	str_fini(&j->devices);
	free(j->name_space);
	free(j->pod);
	free(j->uid);
	free(j->node);
	free(j);
}

static void tell(const struct job *j, const char *type, const char *reason, const char *text)
{
	const struct kube_event_object about = { "v1", "Pod", j->name_space, j->pod, j->uid };

	if (j->binder->config.events != NULL)
		kube_events_tell(j->binder->config.events, &about, type, reason, text);
}

void job_answer(struct job *j, const char *error)
{
	void (*done)(void *arg, const char *error) = HM_STEAL(j->done);

	loop_timer_disarm(j->answer);
	if (done == NULL)
		return;
	if (error[0] != '\0') {
		j->binder->stats.failed++;
		log_info("not bound", KV("namespace", j->name_space), KV("pod", j->pod), KV("node", j->node),
			 KV("why", error));
		tell(j, "Warning", "BindingFailed", error);
	}
	done(j->arg, error);
}

/* Somebody else's turn. */
static void leave(struct job *j)
{
	struct binder *b = j->binder;

	if (j->counts) {
		b->in_hand--;
		loop_timer_arm(b->turn, 0);
	}
	j->counts = false;
}

static void close_job(struct job *j)
{
	struct binder *b = j->binder;

	leave(j);
	if (j->classic && map_get(b->by_node, j->node) == j)
		map_remove(b->by_node, j->node);
	b->at_work_count--;
	job_free(j);
}

void job_roll_back(struct job *j)
{
	struct cluster *c = j->binder->config.cluster;
	const struct holding *h = cluster_find(c, j->uid);

	if (h == NULL || strcmp(cluster_holding_node(h), j->node) != 0)
		return;
	if (j->promised || h->state == HOLD_RESERVED)
		cluster_roll_back(c, j->uid);
	j->promised = false;
}

static void on_given_back(void *arg, const struct hm_err *why)
{
	struct job *j = arg;

	j->lock = NULL;
	if (why->code != 0)
		log_warn("a node's lock is not given back", KV("node", j->node), KV_ERR(why));
	close_job(j);
}

/* Certain: it is not bound by us. */
static void fail(struct job *j, const char *why)
{
	const struct lock_request r = { .client = j->binder->config.client,
					.node = j->node,
					.name_space = j->name_space,
					.pod = j->pod,
					.done = on_given_back,
					.arg = j };
	struct hm_err e;

	job_roll_back(j);
	job_answer(j, why);
	if (!j->locked) {
		close_job(j);
		return;
	}
	leave(j);
	j->step = JOB_GIVES_BACK;
	if (lock_give_back(&r, &j->lock, &e) < 0)
		on_given_back(j, &e);
}

static void succeed(struct job *j)
{
	hm_auto_str text = { 0 };

	if (j->promised)
		cluster_bound(j->binder->config.cluster, j->uid);
	j->binder->stats.bound++;
	log_v(3, "bound", KV("namespace", j->name_space), KV("pod", j->pod), KV("node", j->node));
	if (j->binder->config.tell_success) {
		str_addf(&text, "Successfully binding node [%s] to %s/%s", j->node, j->name_space, j->pod);
		tell(j, "Normal", "BindingSucceed", str_text(&text));
	}
	job_answer(j, "");
	close_job(j);
}

void job_give_up(struct job *j, const char *why)
{
	if (j->step != JOB_POSTS && j->step != JOB_RESOLVES) {
		if (j->step != JOB_GIVES_BACK)
			fail(j, why);
		return;
	}
	job_answer(j, why);
	leave(j);
}

/* ---- what the pod says */

static int ask_pod(struct job *j, enum job_step step, void (*done)(void *arg, const struct kube_answer *a),
		   struct hm_err *e)
{
	struct kube_events_of_call events = { .done = done, .arg = j };
	struct kube_request r = { .verb = KUBE_GET, .timeout_ms = POST_MS };
	hm_auto_str path = { 0 };

	j->step = step;
	kube_url_add_path(&path, "/api/v1", j->name_space, "pods", j->pod);
	if (str_failed(&path))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	r.path = str_text(&path);
	return kube_client_call(j->binder->config.client, &r, &events, &j->call, e);
}

static bool has_text(const struct cJSON *pod, const char *key, const char *want)
{
	const char *text = pod_annotation(pod, key);

	return text != NULL && strcmp(text, want) == 0;
}

static bool is_this_pod(const struct job *j, const struct cJSON *pod)
{
	const char *uid = pod_text(pod_member(pod, "metadata"), "uid");

	return uid != NULL && strcmp(uid, j->uid) == 0;
}

static bool is_bound_by_us(const struct job *j, const struct cJSON *pod)
{
	const char *node = pod_text(pod_member(pod, "spec"), "nodeName");

	if (!is_this_pod(j, pod) || node == NULL || strcmp(node, j->node) != 0)
		return false;
	return !j->promised ||
	       (has_text(pod, HAMI_POD_TIME, j->time) && has_text(pod, HAMI_POD_ALLOCATED, str_text(&j->devices)));
}

static void again_later(struct job *j)
{
	loop_timer_arm(j->again, kube_backoff_next(&j->backoff, kube_random()));
}

static void on_resolved(void *arg, const struct kube_answer *a)
{
	struct job *j = arg;
	hm_auto(cJSON) *pod = NULL;
	struct hm_err e;

	j->call = NULL;
	if (a->status.outcome == KUBE_NOT_FOUND)
		fail(j, j->last.msg);
	else if (a->status.outcome != KUBE_DONE || json_parse(a->body, a->n, &pod, &e) < 0)
		again_later(j);
	else if (is_bound_by_us(j, pod))
		succeed(j);
	else if (!j->refused && loop_now_ms(j->binder->loop) - j->posted_ms < SETTLE_MS)
		again_later(j);
	else
		fail(j, j->last.msg);
}

static void resolve(struct job *j)
{
	struct hm_err e;

	if (ask_pod(j, JOB_RESOLVES, on_resolved, &e) < 0)
		again_later(j);
}

/* ---- the Binding */

static void on_posted(void *arg, const struct kube_answer *a)
{
	struct job *j = arg;

	j->call = NULL;
	j->last = a->err;
	switch (a->status.outcome) {
	case KUBE_DONE: succeed(j); return;
	case KUBE_CONFLICT:
	case KUBE_EXISTS: /* another's, or the echo of our own */
		j->refused = true;
		resolve(j);
		return;
	case KUBE_NO_ANSWER:
	case KUBE_SERVER_ERROR:
		j->binder->stats.posts_again++;
		again_later(j);
		return;
	default: fail(j, a->err.msg);
	}
}

static void post(struct job *j)
{
	struct kube_events_of_call events = { .done = on_posted, .arg = j };
	const struct kube_request r = { .verb = KUBE_POST,
					.path = str_text(&j->path),
					.content_type = KUBE_JSON,
					.body = str_text(&j->body),
					.n = j->body.n,
					.timeout_ms = POST_MS };
	struct hm_err e;

	if (kube_client_call(j->binder->config.client, &r, &events, &j->call, &e) == 0) {
		j->step = JOB_POSTS;
		j->posted_ms = loop_now_ms(j->binder->loop);
	} else if (j->step == JOB_POSTS) {
		again_later(j);
	} else {
		fail(j, e.msg);
	}
}

void job_on_again(void *arg)
{
	struct job *j = arg;

	if (j->step == JOB_RESOLVES || j->done == NULL)
		resolve(j); /* nobody waits any more: nothing new is sent */
	else
		post(j);
}

static int make_binding(struct job *j, const struct bind_marks *marks, struct hm_err *e)
{
	const struct kube_binding b = {
		j->name_space, j->pod, j->uid, j->node, marks->values, marks->count,
	};

	str_add(&j->devices, str_text(&marks->devices));
	memcpy(j->time, marks->time, sizeof j->time);
	if (str_failed(&j->devices))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	return kube_binding_text(&b, &j->path, &j->body, e);
}

/* As they are now; NULL: there was never one, and nothing is signed. */
static const struct signature_keys *keys_of(const struct bind_config *c)
{
	struct hm_err e;

	if (c->keys != NULL && signature_keys_refresh(c->keys, &e) < 0)
		log_warn("signature keys", KV_ERR(&e));
	return c->keys != NULL && signature_keys_are_wanted(c->keys) ? c->keys : NULL;
}

static void make_and_post(struct job *j)
{
	struct bind_config *c = &j->binder->config;
	const struct holding *h = cluster_find(c->cluster, j->uid);
	struct bind_marks marks = { .count = 0 };
	struct hm_err e = { 0 };
	int err = 0;

	if (j->promised && h == NULL) {
		fail(j, "the pod is gone");
		return;
	}
	if (j->promised)
		err = bind_marks_make(h, keys_of(c), clock_wall_ms(), &marks, &e);
	if (err == 0)
		err = make_binding(j, &marks, &e);
	bind_marks_fini(&marks);
	if (err < 0)
		fail(j, e.msg);
	else
		post(j);
}

/* ---- before it */

static void on_locked(void *arg, const struct hm_err *why)
{
	struct job *j = arg;

	j->lock = NULL;
	if (why->code != 0) {
		j->binder->stats.contended += why->code == HM_EAGAIN;
		fail(j, why->msg);
		return;
	}
	j->locked = true;
	make_and_post(j);
}

static void take_lock(struct job *j)
{
	struct binder *b = j->binder;
	const struct lock_request r = {
		b->config.client,
		j->node,
		j->name_space,
		j->pod,
		view_node(b->config.view, j->node),
		b->config.lock_timeout_ms,
		on_locked,
		j,
	};
	hm_auto_str text = { 0 };
	struct hm_err e;

	if (map_get(b->by_node, j->node) != NULL) {
		b->stats.contended++;
		str_addf(&text, "node %s is locked: node lock contention", j->node);
		fail(j, str_text(&text));
		return;
	}
	j->step = JOB_LOCKS;
	if (map_put(b->by_node, j->node, j, NULL) < 0) {
		fail(j, "out of memory");
		return;
	}
	j->classic = true;
	if (lock_take_begin(&r, &j->lock, &e) < 0)
		fail(j, e.msg);
}

/* Nothing is promised to it: it asks for nothing, or what was promised is no more. */
static void on_unpromised(void *arg, const struct kube_answer *a)
{
	struct job *j = arg;
	hm_auto(cJSON) *pod = NULL;
	hm_auto_pod_ask ask = { 0 };
	struct hm_err e;

	j->call = NULL;
	if (a->status.outcome != KUBE_DONE)
		fail(j, a->err.msg);
	else if (json_parse(a->body, a->n, &pod, &e) < 0 || pod_read_ask(pod, &j->binder->config.pods, &ask, &e) < 0)
		fail(j, e.msg);
	else if (!is_this_pod(j, pod))
		fail(j, "the pod is another one of this name");
	else if (pod_ask_any(&ask))
		fail(j, "nothing is reserved for the pod on this node: it is to be scheduled again");
	else
		make_and_post(j);
}

void job_start(struct job *j)
{
	struct bind_config *c = &j->binder->config;
	const char *bar = c->barred != NULL ? c->barred(c->arg) : NULL;
	const struct node_state *n = cluster_node(c->cluster, j->node);
	hm_auto_str text = { 0 };
	struct hm_err e;
	int err;

	if (bar != NULL) {
		fail(j, bar);
		return;
	}
	err = cluster_confirm(c->cluster, j->uid, j->node, &e);
	if (err == -HM_ENOTFOUND && cluster_find(c->cluster, j->uid) == NULL) {
		if (ask_pod(j, JOB_ASKS, on_unpromised, &e) < 0)
			fail(j, e.msg);
		return;
	}
	if (err < 0) {
		fail(j, e.msg);
		return;
	}
	j->promised = true;
	if (n == NULL) {
		str_addf(&text, "failed to get node %s", j->node);
		fail(j, str_text(&text));
	} else if (n->late_binding) {
		make_and_post(j);
	} else {
		take_lock(j);
	}
}
