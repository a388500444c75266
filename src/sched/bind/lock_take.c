#include "sched/bind/lock_take.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "hami/node_lock.h"
#include "io/loop.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "kube/patch.h"
#include "kube/url.h"
#include "sched/view/pod_hold.h"

struct lock_take {
	struct lock_request request; /* its texts are ours */
	char *node, *name_space, *pod, *ours;
	bool giving;
	bool settles; /* giving: the patch under way is to be done instead of the one in doubt */
	char *value;  /* on the node; NULL: none */
	char *uid, *version;
	struct node_lock holder; /* who is asked for */
	bool fresh;              /* the value is the API server's, not the watch's */
	unsigned tries;
	struct kube_backoff backoff;
	struct kube_call *call;
	struct loop_timer *timer;
};

static void look(struct lock_take *l);

enum lock_says lock_says(const char *value, const char *name_space, const char *name, int64_t now_s,
			 uint64_t timeout_ms)
{
	struct node_lock lock;
	int64_t age_s;

	if (value == NULL || node_lock_parse(value, &lock, NULL) < 0)
		return LOCK_FREE;
	age_s = now_s - lock.taken_s;
	if (age_s > (int64_t)(timeout_ms / 1000) || age_s < -(int64_t)(timeout_ms / 1000))
		return LOCK_FREE;
	if (lock.pod_name[0] == '\0')
		return LOCK_HELD;
	if (strcmp(lock.pod_name, name) == 0 && strcmp(lock.pod_namespace, name_space) == 0)
		return LOCK_FREE;
	return LOCK_ASK_HOLDER;
}

/* ---- end */

static void lock_take_free(struct lock_take *l)
{
	if (l == NULL)
		return;
	kube_call_cancel(l->call);
	loop_timer_free(l->timer);
	free(l->node);
	free(l->name_space);
	free(l->pod);
	free(l->ours);
	free(l->value);
	free(l->uid);
	free(l->version);
	free(l);
}
HM_DEFINE_AUTO(lock_take, lock_take_free);

void lock_take_cancel(struct lock_take *l)
{
	lock_take_free(l);
}

static void finish(struct lock_take *l, const struct hm_err *e)
{
	static const struct hm_err none;
	struct lock_request r = l->request;
	struct hm_err why = e != NULL ? *e : none;

	lock_take_free(l);
	r.done(r.arg, &why);
}

static void fail(struct lock_take *l, const struct hm_err *e)
{
	struct hm_err why = *e;

	hm_err_wrap(&why, "node lock of %s", l->node);
	finish(l, &why);
}

static void contended(struct lock_take *l)
{
	hm_auto_str within = { 0 };
	struct hm_err e;

	duration_add(&within, l->request.timeout_ms);
	hm_err_set(&e, HM_EEXIST, "node %s has been locked within %s: node lock contention", l->node,
		   str_text(&within));
	finish(l, &e);
}

/* ---- requests */

static bool keep(char **to, const char *text)
{
	free(*to);
	*to = text != NULL ? strdup(text) : NULL;
	return text == NULL || *to != NULL;
}

static void send(struct lock_take *l, const struct kube_request *request, const char *name_space, const char *plural,
		 const char *name, void (*done)(void *arg, const struct kube_answer *a))
{
	struct kube_events_of_call events = { .done = done, .arg = l };
	struct kube_request r = *request;
	hm_auto_str path = { 0 };
	struct hm_err e;

	kube_url_add_path(&path, "/api/v1", name_space, plural, name);
	r.path = str_text(&path);
	if (str_failed(&path))
		hm_err_set(&e, HM_ENOMEM, "out of memory");
	else if (kube_client_call(l->request.client, &r, &events, &l->call, &e) == 0)
		return;
	fail(l, &e);
}

static void on_node(void *arg, const struct kube_answer *a)
{
	struct lock_take *l = arg;
	hm_auto(cJSON) *tree = NULL;
	struct kube_object o;
	struct hm_err e;

	l->call = NULL;
	if (a->status.outcome != KUBE_DONE) {
		fail(l, &a->err);
	} else if (json_parse(a->body, a->n, &tree, &e) < 0 || kube_object_read(tree, &o, &e) < 0) {
		fail(l, &e);
	} else if (!keep(&l->value, pod_annotation(tree, HAMI_NODE_LOCK)) || !keep(&l->uid, o.uid) ||
		   !keep(&l->version, o.resource_version)) {
		hm_err_set(&e, HM_ENOMEM, "out of memory");
		fail(l, &e);
	} else {
		l->fresh = true;
		look(l);
	}
}

static void read_node(struct lock_take *l)
{
	const struct kube_request request = { .verb = KUBE_GET };

	send(l, &request, NULL, "nodes", l->node, on_node);
}

/* At the begin from the loop, so that done never comes from inside a call; and after a conflict. */
static void on_turn(void *arg)
{
	struct lock_take *l = arg;

	if (l->version != NULL)
		look(l);
	else
		read_node(l);
}

static void look_anew(struct lock_take *l, uint32_t after_ms)
{
	l->settles = false;
	(void)keep(&l->version, NULL);
	loop_timer_arm(l->timer, after_ms);
}

static void on_patched(void *arg, const struct kube_answer *a)
{
	struct lock_take *l = arg;

	l->call = NULL;
	if (!l->giving && a->status.outcome != KUBE_NO_ANSWER && a->status.outcome != KUBE_SERVER_ERROR)
		str_clear(l->request.doubt);
	if (a->status.outcome == KUBE_DONE && !l->settles) {
		finish(l, NULL);
	} else if (a->status.outcome == KUBE_DONE) {
		str_clear(l->request.doubt);
		look_anew(l, 0);
	} else if (a->status.outcome == KUBE_CONFLICT && ++l->tries < LOCK_TRIES) {
		look_anew(l, kube_backoff_next(&l->backoff, kube_random()));
	} else {
		fail(l, &a->err);
	}
}

static void patch(struct lock_take *l, const char *value)
{
	const struct kube_patch_value lock = { HAMI_NODE_LOCK, value };
	const struct kube_patch p = {
		.uid = l->uid, .resource_version = l->version, .annotations = &lock, .annotation_count = 1
	};
	char *body hm_auto_heap = NULL;
	struct hm_err e;

	if (kube_patch_text(&p, &body, &e) < 0) {
		fail(l, &e);
		return;
	}
	if (!l->giving) {
		str_clear(l->request.doubt);
		str_add(l->request.doubt, l->version);
	}
	send(l,
	     &(struct kube_request) {
		     .verb = KUBE_PATCH, .content_type = KUBE_MERGE_PATCH, .body = body, .n = strlen(body) },
	     NULL, "nodes", l->node, on_patched);
}

/* ---- taking */

static int64_t now_s(void)
{
	return (int64_t)(clock_wall_ms() / 1000);
}

static void take(struct lock_take *l)
{
	if (l->value != NULL)
		log_info("a node's lock is taken over", KV("node", l->node), KV("was", l->value));
	patch(l, l->ours);
}

/* Whether the pod that the lock names still needs it. */
static void on_holder(void *arg, const struct kube_answer *a)
{
	struct lock_take *l = arg;
	hm_auto(cJSON) *tree = NULL;
	const char *node;
	struct hm_err e;

	l->call = NULL;
	if (a->status.outcome == KUBE_NOT_FOUND) {
		take(l);
		return;
	}
	if (a->status.outcome != KUBE_DONE || json_parse(a->body, a->n, &tree, &e) < 0) {
		fail(l, a->status.outcome != KUBE_DONE ? &a->err : &e);
		return;
	}
	node = pod_node(tree);
	if (pod_has_ended(tree) || (node != NULL && strcmp(node, l->node) != 0))
		take(l);
	else
		contended(l);
}

static void look_to_take(struct lock_take *l)
{
	const struct kube_request request = { .verb = KUBE_GET };

	switch (lock_says(l->value, l->name_space, l->pod, now_s(), l->request.timeout_ms)) {
	case LOCK_FREE: take(l); return;
	case LOCK_HELD: break;
	case LOCK_ASK_HOLDER:
		if (!l->fresh || node_lock_parse(l->value, &l->holder, NULL) < 0)
			break;
		send(l, &request, l->holder.pod_namespace, "pods", l->holder.pod_name, on_holder);
		return;
	}
	if (l->fresh)
		contended(l);
	else
		read_node(l);
}

static void settle(struct lock_take *l)
{
	l->settles = true;
	patch(l, l->ours);
}

static void look(struct lock_take *l)
{
	if (!l->giving)
		look_to_take(l);
	else if (l->value != NULL && strcmp(l->value, l->ours) == 0)
		patch(l, NULL);
	else if (l->request.doubt->n > 0 && strcmp(str_text(l->request.doubt), l->version) == 0)
		settle(l);
	else
		finish(l, NULL);
}

/* ---- life */

static int begin(const struct lock_request *r, bool giving, struct lock_take **out, struct hm_err *e)
{
	hm_auto(lock_take) *l = calloc(1, sizeof *l);

	if (l == NULL)
		return hm_err_set(e, HM_ENOMEM, "node lock");
	l->request = *r;
	l->request.seen = NULL;
	l->request.node = l->request.name_space = l->request.pod = l->request.value = NULL; /* the copies are used */
	l->giving = giving;
	l->backoff = (struct kube_backoff) { 100, 2000, 0 };
	if (!keep(&l->node, r->node) || !keep(&l->name_space, r->name_space) || !keep(&l->pod, r->pod) ||
	    !keep(&l->ours, r->value) || loop_timer_new(kube_client_loop(r->client), on_turn, l, &l->timer, e) < 0)
		return hm_err_set(e, HM_ENOMEM, "node lock");
	if (r->seen != NULL && !giving &&
	    (!keep(&l->value, r->seen->lock) || !keep(&l->uid, r->seen->uid) ||
	     !keep(&l->version, r->seen->resource_version)))
		return hm_err_set(e, HM_ENOMEM, "node lock");
	loop_timer_arm(l->timer, 0);
	*out = HM_STEAL(l);
	return 0;
}

int lock_take_begin(const struct lock_request *r, struct lock_take **out, struct hm_err *e)
{
	return begin(r, false, out, e);
}

int lock_give_back(const struct lock_request *r, struct lock_take **out, struct hm_err *e)
{
	return begin(r, true, out, e);
}
