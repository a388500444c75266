#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "kube/binding.h"
#include "kube/url.h"
#include "sched/bind/bind_internal.h"
#include "sched/bind/bind_marks.h"
#include "sched/view/pod_hold.h"

/* A Binding has this long to get to the API server, where we give it up, and as long there, where the server does
 * (?timeout=). LEAST_MS: less is not worth a try. */
enum { POST_MS = BIND_OVER_MS / 2, LEAST_MS = 100, OWN_RATE_MS = 100 };

static uint64_t now_ms(const struct job *j)
{
	return loop_now_ms(j->binder->loop);
}

static void again_after(struct job *j, uint32_t least_ms)
{
	loop_timer_arm(j->again, HM_MAX(least_ms, kube_backoff_next(&j->backoff, kube_random())));
}

/* ---- what the pod says */

static bool has_text(const struct cJSON *pod, const char *key, const char *want)
{
	const char *text = pod_annotation(pod, key);

	return text != NULL && strcmp(text, want) == 0;
}

static bool is_bound_by_us(const struct job *j, const struct cJSON *pod)
{
	const char *node = pod_node(pod);

	if (!job_is_pod(j, pod) || node == NULL || strcmp(node, j->node) != 0)
		return false;
	return !j->promised ||
	       (has_text(pod, HAMI_POD_TIME, j->time) && has_text(pod, HAMI_POD_ALLOCATED, str_text(&j->devices)));
}

/* By a Binding of ours that was still on its way when the pod was asked for, and may have come since it was read. The
 * API server binds no pod twice, and none that is being deleted. */
static bool can_still_be_bound(const struct job *j, const struct cJSON *pod)
{
	return job_is_pod(j, pod) && pod_node(pod) == NULL && !pod_is_terminating(pod) && j->asked_ms < j->over_ms;
}

static void on_resolved(void *arg, const struct kube_answer *a)
{
	struct job *j = arg;
	hm_auto(cJSON) *pod = NULL;
	struct hm_err e;

	j->call = NULL;
	if (a->status.outcome == KUBE_NOT_FOUND)
		job_fail(j, j->last.msg);
	else if (a->status.outcome != KUBE_DONE || json_parse(a->body, a->n, &pod, &e) < 0)
		again_after(j, 0);
	else if (is_bound_by_us(j, pod))
		job_succeed(j);
	else if (can_still_be_bound(j, pod))
		again_after(j, 0);
	else
		job_fail(j, j->last.msg);
}

void job_resolve(struct job *j)
{
	struct hm_err e;

	if (job_ask_pod(j, JOB_RESOLVES, on_resolved, &e) < 0)
		again_after(j, 0);
}

/* ---- the Binding */

/* The last one sent, or not sent, is none: what is left are those before it that nothing was heard of. */
static void pause_for(struct job *j, uint32_t ms)
{
	if (j->over_ms == 0 && j->done == NULL) {
		job_fail(j, j->last.msg);
		return;
	}
	j->step = j->over_ms == 0 ? JOB_PAUSES : JOB_POSTS;
	loop_timer_arm(j->again, ms);
}

/* The same, and it will not be sent again. */
static void send_no_more(struct job *j, const char *why)
{
	if (j->over_ms == 0) {
		job_fail(j, why);
		return;
	}
	j->step = JOB_RESOLVES;
	job_give_up(j, why);
	job_resolve(j);
}

static void on_posted(void *arg, const struct kube_answer *a)
{
	struct job *j = arg;

	j->call = NULL;
	j->last = a->err;
	switch (a->status.outcome) {
	case KUBE_DONE: job_succeed(j); return;
	case KUBE_NO_ANSWER:
	case KUBE_SERVER_ERROR:
		j->over_ms = HM_MAX(j->over_ms, j->sent_over_ms);
		j->binder->stats.posts_again++;
		again_after(j, a->retry_after_ms);
		return;
	case KUBE_TOO_MANY:
	case KUBE_UNAUTHORIZED:
		pause_for(j, HM_MAX(a->retry_after_ms, kube_backoff_next(&j->backoff, kube_random())));
		return;
	case KUBE_CONFLICT: /* another's, or the echo of our own */
	case KUBE_EXISTS: job_resolve(j); return;
	case KUBE_NOT_FOUND: job_fail(j, a->err.msg); return;
	default: send_no_more(j, a->err.msg);
	}
}

/* NULL, and for how long: it may be sent now. */
static const char *why_not(const struct job *j, uint32_t *ms)
{
	const struct bind_config *c = &j->binder->config;
	const char *bar = c->barred != NULL ? c->barred(c->arg) : NULL;
	uint64_t alone_ms = c->alone_ms != NULL ? c->alone_ms(c->arg) : UINT64_MAX;

	*ms = (uint32_t)HM_MIN(alone_ms / 2, (uint64_t)POST_MS);
	return bar == NULL && *ms < LEAST_MS ? "this replica's Lease is nearly over" : bar;
}

static int send_binding(struct job *j, uint32_t ms, struct hm_err *e)
{
	struct kube_events_of_call events = { .done = on_posted, .arg = j };
	struct kube_request r = { .verb = KUBE_POST,
				  .content_type = KUBE_JSON,
				  .body = str_text(&j->body),
				  .n = j->body.n,
				  .timeout_ms = ms,
				  .once = true };
	hm_auto_str path = { 0 }, timeout = { 0 };

	str_add(&path, str_text(&j->path));
	str_addf(&timeout, "%ums", ms);
	kube_url_add_query(&path, "timeout", str_text(&timeout));
	if (str_failed(&path) || str_failed(&timeout))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	r.path = str_text(&path);
	return kube_client_call(j->binder->config.client, &r, &events, &j->call, e);
}

void job_post(struct job *j)
{
	struct hm_err e;
	uint32_t ms;
	const char *bar = why_not(j, &ms);
	int err;

	if (bar != NULL) {
		send_no_more(j, bar);
		return;
	}
	err = send_binding(j, ms, &e);
	if (err == 0) {
		j->step = JOB_POSTS;
		j->sent_over_ms = now_ms(j) + 2ULL * ms;
	} else if (err == -HM_EAGAIN) {
		j->last = e;
		pause_for(j, OWN_RATE_MS);
	} else {
		send_no_more(j, e.msg);
	}
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

void job_make_and_post(struct job *j)
{
	struct bind_config *c = &j->binder->config;
	const struct holding *h = cluster_find(c->cluster, j->uid);
	struct bind_marks marks = { .count = 0 };
	struct hm_err e = { 0 };
	int err = 0;

	if (j->promised && h == NULL) {
		job_fail(j, "the pod is gone");
		return;
	}
	if (j->promised)
		err = bind_marks_make(h, keys_of(c), clock_wall_ms(), &marks, &e);
	if (err == 0)
		err = make_binding(j, &marks, &e);
	bind_marks_fini(&marks);
	if (err < 0)
		job_fail(j, e.msg);
	else
		job_post(j);
}
