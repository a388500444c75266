#include "sched/lead/takeover.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "io/loop.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "kube/patch.h"
#include "kube/url.h"

enum { AGAIN_MS = 1000, EACH_MS = 15000, CALL_MS = 5000 };

enum takeover_step { TAKEOVER_NONE, TAKEOVER_ASKS, TAKEOVER_WAITS, TAKEOVER_MARKS, TAKEOVER_DONE };

struct takeover {
	struct takeover_config config;
	enum takeover_step step;
	char mark[33];
	struct kube_call *call;  /* of our own pod, or the list */
	struct kube_call *other; /* the label of another's, or of ours when it ends */
	struct str others;       /* pods that still bear our label, a space behind each */
	struct loop_timer *turn;
};

static bool has_pod(const struct takeover *t)
{
	return t->config.pod != NULL && t->config.pod[0] != '\0' && t->config.name_space != NULL &&
	       t->config.name_space[0] != '\0';
}

/* ---- labels */

static int set_role(struct takeover *t, const char *pod, const char *role, const char *mark,
		    void (*done)(void *arg, const struct kube_answer *a), struct kube_call **call, struct hm_err *e)
{
	const struct kube_patch_value label = { HAMI_POD_ROLE, role }, term = { HAMI_POD_TERM, mark };
	const struct kube_patch p = {
		.labels = &label, .label_count = 1, .annotations = &term, .annotation_count = mark != NULL
	};
	struct kube_events_of_call events = { .done = done, .arg = t };
	struct kube_request r = { .verb = KUBE_PATCH, .content_type = KUBE_MERGE_PATCH, .timeout_ms = CALL_MS };
	char *body hm_auto_heap = NULL;
	hm_auto_str path = { 0 };

	if (kube_patch_text(&p, &body, e) < 0)
		return -e->code;
	kube_url_add_path(&path, "/api/v1", t->config.name_space, "pods", pod);
	if (str_failed(&path))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	r.path = str_text(&path);
	r.body = body;
	r.n = strlen(body);
	return kube_client_call(t->config.client, &r, &events, call, e);
}

static void set_next_role(struct takeover *t);

static void on_role(void *arg, const struct kube_answer *a)
{
	struct takeover *t = arg;

	t->other = NULL;
	if (a->status.outcome != KUBE_DONE)
		log_v(2, "a replica's label", KV_ERR(&a->err));
	set_next_role(t);
}

/* One after the other; there are two or three. */
static void set_next_role(struct takeover *t)
{
	char name[KUBE_NAME_BYTES];
	const char *text = str_text(&t->others), *end = strchr(text, ' ');
	hm_auto_str left = { 0 };
	struct hm_err e;

	if (end == NULL)
		return;
	hm_fmt(name, sizeof name, "%.*s", (int)(end - text), text);
	str_add(&left, end + 1);
	str_clear(&t->others);
	str_add(&t->others, str_text(&left));
	if (set_role(t, name, HAMI_ROLE_FOLLOWER, NULL, on_role, &t->other, &e) < 0)
		log_v(2, "a replica's label", KV_ERR(&e));
}

static void note_pod(struct takeover *t, const struct cJSON *pod)
{
	const struct cJSON *meta = pod_member(pod, "metadata");
	const char *role = pod_text(pod_member(meta, "labels"), HAMI_POD_ROLE), *name = pod_text(meta, "name");
	bool leads = role != NULL && strcmp(role, HAMI_ROLE_LEADER) == 0;
	struct hm_err e;

	if (name == NULL)
		return;
	if (strcmp(name, t->config.pod) != 0) {
		if (leads)
			str_addf(&t->others, "%s ", name);
		return;
	}
	if (!leads && set_role(t, name, HAMI_ROLE_LEADER, NULL, on_role, &t->other, &e) < 0)
		log_v(2, "our label", KV_ERR(&e));
}

static void on_replicas(void *arg, const struct kube_answer *a)
{
	struct takeover *t = arg;
	hm_auto(cJSON) *tree = NULL;
	const struct cJSON *item;
	struct hm_err e;

	t->call = NULL;
	loop_timer_arm(t->turn, EACH_MS);
	if (a->status.outcome != KUBE_DONE || json_parse(a->body, a->n, &tree, &e) < 0) {
		log_v(2, "replicas cannot be listed", KV_ERR(a->status.outcome != KUBE_DONE ? &a->err : &e));
		return;
	}
	str_clear(&t->others);
	cJSON_ArrayForEach(item, pod_member(tree, "items")) note_pod(t, item);
	if (t->other == NULL)
		set_next_role(t);
}

static void list_replicas(struct takeover *t)
{
	struct kube_events_of_call events = { .done = on_replicas, .arg = t };
	struct kube_request r = { .verb = KUBE_GET, .timeout_ms = CALL_MS, .tries = 1 };
	hm_auto_str path = { 0 };
	struct hm_err e;

	loop_timer_arm(t->turn, EACH_MS);
	kube_url_add_path(&path, "/api/v1", t->config.name_space, "pods", NULL);
	kube_url_add_query(&path, "labelSelector", HAMI_SCHEDULER_SELECTOR);
	r.path = str_text(&path);
	if (!str_failed(&path) && kube_client_call(t->config.client, &r, &events, &t->call, &e) < 0)
		log_v(2, "replicas cannot be listed", KV_ERR(&e));
}

/* ---- the mark */

static void finish(struct takeover *t)
{
	t->step = TAKEOVER_DONE;
	if (has_pod(t))
		loop_timer_arm(t->turn, 0);
	t->config.ready(t->config.arg);
}

static void on_passed(void *arg)
{
	struct takeover *t = arg;

	if (t->step == TAKEOVER_MARKS)
		finish(t);
}

static void wait_for(struct takeover *t, const char *mark)
{
	const struct view_fence fence = {
		t->config.name_space, t->config.pod, HAMI_POD_TERM, mark, on_passed, t,
	};
	struct hm_err e;

	if (view_wait(t->config.view, &fence, &e) < 0) {
		log_error("takeover", KV_ERR(&e));
		loop_timer_arm(t->turn, AGAIN_MS);
	}
}

static void on_marked(void *arg, const struct kube_answer *a)
{
	struct takeover *t = arg;

	t->call = NULL;
	if (a->status.outcome == KUBE_DONE || t->step != TAKEOVER_MARKS)
		return;
	log_warn("our pod cannot be labelled", KV_ERR(&a->err));
	if (a->status.outcome == KUBE_NO_ANSWER || a->status.outcome == KUBE_SERVER_ERROR ||
	    a->status.outcome == KUBE_TOO_MANY)
		loop_timer_arm(t->turn, AGAIN_MS);
	else
		wait_for(t, NULL);
}

/* The wait comes first: the watch may be faster than the answer. */
static void mark(struct takeover *t)
{
	struct hm_err e;

	if (!has_pod(t)) {
		wait_for(t, NULL);
		return;
	}
	wait_for(t, t->mark);
	if (set_role(t, t->config.pod, HAMI_ROLE_LEADER, t->mark, on_marked, &t->call, &e) < 0) {
		log_warn("our pod cannot be labelled", KV_ERR(&e));
		loop_timer_arm(t->turn, AGAIN_MS);
	}
}

/* ---- a former process in our pod */

static void begin_to_mark(struct takeover *t)
{
	t->step = TAKEOVER_MARKS;
	mark(t);
}

static void on_own_pod(void *arg, const struct kube_answer *a)
{
	struct takeover *t = arg;
	hm_auto(cJSON) *pod = NULL;
	struct hm_err e = a->err;

	t->call = NULL;
	if (a->status.outcome == KUBE_DONE && json_parse(a->body, a->n, &pod, &e) == 0) {
		if (pod_annotation(pod, HAMI_POD_TERM) == NULL) {
			begin_to_mark(t);
			return;
		}
		log_info("a process led here before: what it has sent is waited for",
			 KV_U64("ms", t->config.former_ms));
	} else {
		log_warn("whether a process led here before is not known", KV_ERR(&e));
	}
	t->step = TAKEOVER_WAITS;
	loop_timer_arm(t->turn, t->config.former_ms);
}

static void ask_own_pod(struct takeover *t)
{
	struct kube_events_of_call events = { .done = on_own_pod, .arg = t };
	struct kube_request r = { .verb = KUBE_GET, .timeout_ms = CALL_MS };
	hm_auto_str path = { 0 };
	struct hm_err e;

	t->step = TAKEOVER_ASKS;
	kube_url_add_path(&path, "/api/v1", t->config.name_space, "pods", t->config.pod);
	r.path = str_text(&path);
	if (str_failed(&path) || kube_client_call(t->config.client, &r, &events, &t->call, &e) < 0)
		loop_timer_arm(t->turn, AGAIN_MS);
}

static void on_turn(void *arg)
{
	struct takeover *t = arg;

	kube_call_cancel(HM_STEAL(t->call));
	switch (t->step) {
	case TAKEOVER_NONE: break;
	case TAKEOVER_ASKS: ask_own_pod(t); break;
	case TAKEOVER_WAITS: begin_to_mark(t); break;
	case TAKEOVER_MARKS: mark(t); break;
	case TAKEOVER_DONE: list_replicas(t); break;
	}
}

/* ---- life */

static void stop(struct takeover *t)
{
	kube_call_cancel(HM_STEAL(t->call));
	kube_call_cancel(HM_STEAL(t->other));
	str_clear(&t->others);
	loop_timer_disarm(t->turn);
}

void takeover_begin(struct takeover *t, bool alone)
{
	stop(t);
	hm_fmt(t->mark, sizeof t->mark, "%08x%08x%08x%08x", kube_random(), kube_random(), kube_random(), kube_random());
	if (!alone)
		begin_to_mark(t);
	else if (has_pod(t))
		ask_own_pod(t);
	else
		finish(t);
}

void takeover_end(struct takeover *t)
{
	struct hm_err e;

	if (t->step == TAKEOVER_NONE)
		return;
	stop(t);
	t->step = TAKEOVER_NONE;
	if (has_pod(t) && set_role(t, t->config.pod, HAMI_ROLE_FOLLOWER, NULL, on_role, &t->other, &e) < 0)
		log_v(2, "our label", KV_ERR(&e));
}

bool takeover_is_done(const struct takeover *t)
{
	return t->step == TAKEOVER_DONE;
}

int takeover_new(struct loop *l, const struct takeover_config *config, struct takeover **out, struct hm_err *e)
{
	hm_auto(takeover) *t = calloc(1, sizeof *t);

	if (t == NULL)
		return hm_err_set(e, HM_ENOMEM, "takeover");
	t->config = *config;
	if (loop_timer_new(l, on_turn, t, &t->turn, e) < 0)
		return hm_err_wrap(e, "takeover");
	*out = HM_STEAL(t);
	return 0;
}

void takeover_free(struct takeover *t)
{
	if (t == NULL)
		return;
	kube_call_cancel(t->call);
	kube_call_cancel(t->other);
	loop_timer_free(t->turn);
	str_fini(&t->others);
	free(t);
}
