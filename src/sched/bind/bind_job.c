#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kube/url.h"
#include "sched/bind/bind_internal.h"
#include "sched/bind/bind_label.h"

enum { ASK_MS = 10000 };

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
	str_fini(&j->lock_value);
	str_fini(&j->lock_doubt);
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

void job_leave(struct job *j)
{
	struct binder *b = j->binder;

	b->in_hand -= j->counts;
	j->counts = false;
	loop_timer_arm(b->turn, 0);
}

static void close_job(struct job *j)
{
	struct binder *b = j->binder;

	job_leave(j);
	job_leave_node(j);
	b->doubted -= j->doubted;
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

void job_fail(struct job *j, const char *why)
{
	const struct lock_request r = { .client = j->binder->config.client,
					.node = j->node,
					.name_space = j->name_space,
					.pod = j->pod,
					.value = str_text(&j->lock_value),
					.doubt = &j->lock_doubt,
					.done = on_given_back,
					.arg = j };
	struct hm_err e;

	job_roll_back(j);
	job_answer(j, why);
	kube_call_cancel(HM_STEAL(j->call));
	lock_take_cancel(HM_STEAL(j->lock));
	if (j->lock_value.n == 0) {
		close_job(j);
		return;
	}
	job_leave(j);
	j->step = JOB_GIVES_BACK;
	if (lock_give_back(&r, &j->lock, &e) < 0)
		on_given_back(j, &e);
}

void job_succeed(struct job *j)
{
	const struct bind_config *c = &j->binder->config;
	hm_auto_str text = { 0 };

	if (j->promised)
		cluster_bound(c->cluster, j->uid);
	j->binder->stats.bound++;
	log_v(3, "bound", KV("namespace", j->name_space), KV("pod", j->pod), KV("node", j->node));
	if (c->tell_success) {
		str_addf(&text, "Successfully binding node [%s] to %s/%s", j->node, j->name_space, j->pod);
		tell(j, "Normal", "BindingSucceed", str_text(&text));
	}
	if (c->label_pods && j->promised)
		bind_label_set(c->client, j->name_space, j->pod, j->uid, j->node);
	job_answer(j, "");
	close_job(j);
}

void job_give_up(struct job *j, const char *why)
{
	if (job_may_be_bound(j)) {
		job_answer(j, why);
		job_leave(j);
		j->binder->doubted += !j->doubted;
		j->doubted = true;
	} else if (j->step != JOB_GIVES_BACK) {
		job_fail(j, why);
	}
}

/* ---- what the pod is */

bool job_is_pod(const struct job *j, const struct cJSON *pod)
{
	const char *uid = pod_text(pod_member(pod, "metadata"), "uid");

	return uid != NULL && strcmp(uid, j->uid) == 0;
}

int job_ask_pod(struct job *j, enum job_step step, void (*done)(void *arg, const struct kube_answer *a),
		struct hm_err *e)
{
	struct kube_events_of_call events = { .done = done, .arg = j };
	struct kube_request r = { .verb = KUBE_GET, .timeout_ms = ASK_MS };
	hm_auto_str path = { 0 };

	j->step = step;
	j->asked_ms = loop_now_ms(j->binder->loop);
	kube_url_add_path(&path, "/api/v1", j->name_space, "pods", j->pod);
	if (str_failed(&path))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	r.path = str_text(&path);
	return kube_client_call(j->binder->config.client, &r, &events, &j->call, e);
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
		job_fail(j, a->err.msg);
	else if (json_parse(a->body, a->n, &pod, &e) < 0 || pod_read_ask(pod, &j->binder->config.pods, &ask, &e) < 0)
		job_fail(j, e.msg);
	else if (!job_is_pod(j, pod))
		job_fail(j, "the pod is another one of this name");
	else if (pod_ask_any(&ask))
		job_fail(j, "nothing is reserved for the pod on this node: it is to be scheduled again");
	else
		job_make_and_post(j);
}

/* ---- the begin */

/* Whether it goes on. */
static bool confirm(struct job *j)
{
	const struct bind_config *c = &j->binder->config;
	struct hm_err e;
	int err = cluster_confirm(c->cluster, j->uid, j->node, &e);

	if (err == -HM_ENOTFOUND && cluster_find(c->cluster, j->uid) == NULL) {
		if (job_ask_pod(j, JOB_ASKS, on_unpromised, &e) < 0)
			job_fail(j, e.msg);
		return false;
	}
	if (err < 0)
		job_fail(j, e.msg);
	return err == 0;
}

void job_start(struct job *j)
{
	const struct bind_config *c = &j->binder->config;
	const char *bar = c->barred != NULL ? c->barred(c->arg) : NULL;
	const struct node_state *n = cluster_node(c->cluster, j->node);
	hm_auto_str text = { 0 };

	if (bar != NULL) {
		job_fail(j, bar);
		return;
	}
	if (!j->promised && !confirm(j))
		return;
	j->promised = true;
	if (n == NULL) {
		str_addf(&text, "failed to get node %s", j->node);
		job_fail(j, str_text(&text));
	} else if (n->late_binding) {
		job_make_and_post(j);
	} else {
		job_take_lock(j);
	}
}

void job_on_again(void *arg)
{
	struct job *j = arg;

	if (j->step == JOB_PARKS)
		job_unpark(j);
	else if (j->step == JOB_RESOLVES || j->done == NULL)
		job_resolve(j); /* nobody waits any more: nothing new is sent */
	else
		job_post(j);
}
