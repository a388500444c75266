#include "base/duration.h"
#include "core/fmt.h"
#include "hami/node_lock.h"
#include "sched/bind/bind_internal.h"

/* While a pod of a group waits for a node: how often what we know of the lock is looked at, and how often the API
 * server is asked all the same, for it alone knows of holders that are gone. */
enum { PARK_MS = 100, LOOK_MS = 2000 };

/* As the pod says it is one of a group: the label of the scheduler plugins, or the field of Kubernetes 1.35. */
static const char group_label[] = "scheduling.x-k8s.io/pod-group";

void job_leave_node(struct job *j)
{
	struct map *by_node = j->binder->by_node;

	if (j->classic && map_get(by_node, j->node) == j)
		map_remove(by_node, j->node);
	j->classic = false;
}

/* ---- of a group */

static void park(struct job *j)
{
	uint64_t now = loop_now_ms(j->binder->loop);
	hm_auto_str text = { 0 };

	if (now >= j->park_until_ms) {
		str_add(&text, "timed out after ");
		duration_add(&text, j->binder->config.lock_retry_ms);
		str_addf(&text, " waiting for node %s to be unlocked: node lock contention", j->node);
		job_fail(j, str_text(&text));
		return;
	}
	j->step = JOB_PARKS;
	j->look_ms = now + LOOK_MS;
	job_leave(j);
	loop_timer_arm(j->again, PARK_MS);
}

static bool is_grouped(const struct cJSON *pod)
{
	const char *label = pod_text(pod_member(pod_member(pod, "metadata"), "labels"), group_label);
	const char *group = pod_text(pod_member(pod_member(pod, "spec"), "schedulingGroup"), "podGroupName");

	return (label != NULL && label[0] != '\0') || (group != NULL && group[0] != '\0');
}

static void on_pod(void *arg, const struct kube_answer *a)
{
	struct job *j = arg;
	hm_auto(cJSON) *pod = NULL;
	struct hm_err e;

	j->call = NULL;
	if (a->status.outcome != KUBE_DONE || json_parse(a->body, a->n, &pod, &e) < 0 || !job_is_pod(j, pod) ||
	    !is_grouped(pod)) {
		job_fail(j, j->last.msg);
		return;
	}
	j->grouped = true;
	j->park_until_ms = loop_now_ms(j->binder->loop) + j->binder->config.lock_retry_ms;
	park(j);
}

static bool is_locked(const struct job *j)
{
	const struct view_node *n = view_node(j->binder->config.view, j->node);

	return map_get(j->binder->by_node, j->node) != NULL ||
	       (n != NULL && lock_says(n->lock, j->name_space, j->pod, (int64_t)(clock_wall_ms() / 1000),
				       j->binder->config.lock_timeout_ms) != LOCK_FREE);
}

void job_unpark(struct job *j)
{
	struct binder *b = j->binder;

	if (is_locked(j) && loop_now_ms(b->loop) < j->look_ms) {
		loop_timer_arm(j->again, PARK_MS);
		return;
	}
	link_remove(&j->link);
	link_append(&b->waiting, &j->link);
	b->waiting_count++;
	j->step = JOB_WAITS;
	loop_timer_arm(b->turn, 0);
}

/* Another has it. */
static void contended(struct job *j)
{
	struct hm_err e;

	job_leave_node(j);
	str_clear(&j->lock_value);
	if (j->grouped) {
		park(j);
		return;
	}
	j->binder->stats.contended++;
	if (j->binder->config.lock_retry_ms == 0)
		job_fail(j, j->last.msg);
	else if (job_ask_pod(j, JOB_ASKS, on_pod, &e) < 0)
		job_fail(j, j->last.msg);
}

/* ---- the lock */

static void on_locked(void *arg, const struct hm_err *why)
{
	struct job *j = arg;

	j->lock = NULL;
	if (why->code == 0) {
		job_make_and_post(j);
		return;
	}
	j->last = *why;
	if (why->code == HM_EEXIST)
		contended(j);
	else
		job_fail(j, why->msg);
}

static int write_value(struct job *j, struct hm_err *e)
{
	struct node_lock lock = { .taken_s = (int64_t)(clock_wall_ms() / 1000) };

	hm_fmt(lock.pod_namespace, sizeof lock.pod_namespace, "%s", j->name_space);
	hm_fmt(lock.pod_name, sizeof lock.pod_name, "%s", j->pod);
	str_clear(&j->lock_value);
	node_lock_write(&lock, &j->lock_value);
	return str_failed(&j->lock_value) ? hm_err_set(e, HM_ENOMEM, "out of memory") : 0;
}

static int begin(struct job *j, struct hm_err *e)
{
	struct binder *b = j->binder;
	struct lock_request r = {
		.client = b->config.client,
		.node = j->node,
		.name_space = j->name_space,
		.pod = j->pod,
		.seen = view_node(b->config.view, j->node),
		.timeout_ms = b->config.lock_timeout_ms,
		.doubt = &j->lock_doubt,
		.done = on_locked,
		.arg = j,
	};

	if (map_put(b->by_node, j->node, j, NULL) < 0)
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	j->classic = true;
	if (write_value(j, e) < 0)
		return -e->code;
	r.value = str_text(&j->lock_value);
	return lock_take_begin(&r, &j->lock, e);
}

void job_take_lock(struct job *j)
{
	struct hm_err e;

	j->step = JOB_LOCKS;
	if (map_get(j->binder->by_node, j->node) != NULL) {
		hm_err_set(&j->last, HM_EEXIST, "node %s is locked: node lock contention", j->node);
		contended(j);
	} else if (begin(j, &e) < 0) {
		str_clear(&j->lock_value);
		job_fail(j, e.msg);
	}
}
