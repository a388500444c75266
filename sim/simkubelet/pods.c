#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "core/check.h"
#include "kubelet/pb.h"
#include "kubelet/proto/device_plugin.pb-c.h"
#include "sim/simkubelet/node.h"

/*
 * The order within a pod: init containers one after the other, each to its end; a sidecar only to its start; then the
 * main containers. Before each start PreStartContainer is called for each of its resources. What fails is tried again,
 * the first time soon, then every retry_ms; other containers go on meanwhile.
 */
enum { FIRST_RETRY_MS = 300 };

const char *pod_phase_name(enum pod_phase phase)
{
	static const char *const names[] = { "Pending", "Running", "Succeeded", "Failed" };

	return names[phase];
}

const char *container_state_name(enum container_state state)
{
	static const char *const names[] = { "waiting", "starting", "backoff", "running", "exited" };

	return names[state];
}

struct pod *pods_find(const struct node *n, const char *pod_namespace, const char *name)
{
	LIST_FOR_EACH (&n->pods, it) {
		struct pod *p = HM_CONTAINER(it, struct pod, link);

		if (!p->deleted && strcmp(p->name, name) == 0 && strcmp(p->pod_namespace, pod_namespace) == 0)
			return p;
	}
	return NULL;
}

static bool is_over(const struct pod *p)
{
	return p->deleted || p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

static void set_phase(struct pod *p, enum pod_phase phase)
{
	cJSON *o;

	if (p->phase == phase)
		return;
	p->phase = phase;
	o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "phase", pod_phase_name(phase));
	control_event(p, "phase", o);
	control_pod_changed(p);
}

static void set_text(char **to, const char *text)
{
	free(*to);
	*to = node_text(text);
}

static void event_of(struct container *c, const char *event, const char *reason, const char *message)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "container", c->name);
	if (reason != NULL)
		cJSON_AddStringToObject(o, "reason", reason);
	if (message != NULL)
		cJSON_AddStringToObject(o, "message", message);
	if (c->state == CONTAINER_RUNNING) {
		cJSON_AddNumberToObject(o, "pid", c->pid);
		cJSON_AddStringToObject(o, "log", c->log);
	}
	if (strcmp(event, "exited") == 0)
		cJSON_AddNumberToObject(o, "code", c->exit_code);
	control_event(c->pod, event, o);
}

/* ---- starting a container ---- */

static void start_failed(struct container *c, const char *reason, const char *message)
{
	uint64_t retry = c->pod->node->retry_ms;

	c->state = CONTAINER_BACKOFF;
	set_text(&c->message, message);
	log_warn("container does not start", KV("pod", c->pod->name), KV("container", c->name), KV("reason", reason),
		 KV("message", message));
	event_of(c, "start-error", reason, message);
	loop_timer_arm(c->retry, c->start_failures++ == 0 && retry > FIRST_RETRY_MS ? FIRST_RETRY_MS : retry);
	node_sync(c->pod->node);
}

static void start_now(struct container *c)
{
	struct hm_err e;

	if (container_start(c, &e) < 0) {
		start_failed(c, "CreateContainerError", e.msg);
		return;
	}
	c->state = CONTAINER_RUNNING;
	c->start_failures = 0;
	c->starts++;
	set_text(&c->message, NULL);
	event_of(c, "started", NULL, NULL);
	if (!c->init)
		set_phase(c->pod, POD_RUNNING);
	node_sync(c->pod->node);
}

static void pre_start_next(struct container *c);

static void on_pre_start_end(void *arg, int status, const char *text)
{
	struct container *c = arg;
	struct hm_err e;

	c->pre_start = NULL;
	if (c->state != CONTAINER_STARTING)
		return; /* given up */
	if (status == RPC_OK) {
		c->pre_started++;
		pre_start_next(c);
		return;
	}
	if (status == RPC_DEADLINE_EXCEEDED)
		text = "context deadline exceeded";
	hm_err_set(&e, HM_EAGAIN, "device plugin PreStartContainer rpc failed with err: rpc error: code = %s desc = %s",
		   status_words(status), text);
	start_failed(c, "CreateContainerConfigError", e.msg);
}

static void call_pre_start(struct container *c, const struct plugin *p, const struct grant *g)
{
	V1beta1__PreStartContainerRequest m = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
	const struct rpc_reply reply = { NULL, on_pre_start_end, c };
	struct ids shuffled = { 0 };
	hm_auto_str msg = { 0 };
	struct hm_err e;

	ids_copy(&shuffled, &g->ids);
	ids_shuffle(&shuffled);
	m.devices_ids = shuffled.list;
	m.n_devices_ids = shuffled.count;
	pb_pack(&msg, &m);
	ids_clear(&shuffled);
	if (rpc_client_call(p->client, "/v1beta1.DevicePlugin/PreStartContainer", (const uint8_t *)str_text(&msg),
			    msg.n, c->pod->node->pre_start_ms, &reply, &c->pre_start, &e) < 0)
		start_failed(c, "CreateContainerConfigError", e.msg);
}

static void pre_start_next(struct container *c)
{
	for (; c->pre_started < c->grant_count; c->pre_started++) {
		const struct grant *g = &c->grants[c->pre_started];
		const struct plugin *p = plugins_find(c->pod->node, g->resource);

		if (p == NULL || p->client == NULL) {
			start_failed(c, "CreateContainerConfigError",
				     "device plugin PreStartContainer rpc failed with err: endpoint has been stopped");
			return;
		}
		if (p->wants_pre_start) {
			call_pre_start(c, p, g);
			return;
		}
	}
	start_now(c);
}

static void begin(struct container *c)
{
	c->state = CONTAINER_STARTING;
	c->pre_started = 0;
	pre_start_next(c);
}

static void on_retry(void *arg)
{
	struct container *c = arg;

	if (c->state == CONTAINER_BACKOFF)
		c->state = CONTAINER_WAITING;
	node_sync(c->pod->node);
}

/* ---- the pod's next step ---- */

/* True when nothing more can start behind this init container now. */
static bool init_blocks(struct container *c)
{
	if (c->state == CONTAINER_WAITING) {
		begin(c);
		return true;
	}
	if (c->sidecar)
		return c->starts == 0;
	return c->state != CONTAINER_EXITED;
}

static void finish_if_done(struct pod *p)
{
	bool failed = false, sidecars = false;

	for (size_t i = 0; i < p->container_count; i++) {
		struct container *c = &p->containers[i];

		if (!c->init && c->state != CONTAINER_EXITED)
			return;
		failed |= !c->init && c->exit_code != 0;
	}
	p->finishing = true;
	for (size_t i = 0; i < p->container_count; i++) {
		sidecars |= p->containers[i].pid != 0;
		container_kill(&p->containers[i], SIGKILL);
	}
	if (!sidecars)
		set_phase(p, failed ? POD_FAILED : POD_SUCCEEDED);
}

void pod_step(struct pod *p)
{
	if (!p->started || is_over(p))
		return;
	for (size_t i = 0; i < p->container_count; i++) {
		if (p->containers[i].state == CONTAINER_STARTING)
			return; /* one at a time */
	}
	for (size_t i = 0; !p->finishing && i < p->container_count; i++) {
		struct container *c = &p->containers[i];

		if (c->init) {
			if (init_blocks(c))
				return;
		} else if (c->state == CONTAINER_WAITING) {
			begin(c);
			return;
		}
	}
	finish_if_done(p);
}

void pod_admitted(struct pod *p)
{
	p->started = true;
	control_event(p, "admitted", NULL);
}

static bool is_restarted(const struct container *c, int code)
{
	const struct pod *p = c->pod;

	if (p->finishing || is_over(p))
		return false;
	if (c->sidecar)
		return true;
	if (c->init && code == 0)
		return false;
	return p->restart == RESTART_ALWAYS || (p->restart == RESTART_ON_FAILURE && code != 0);
}

void pod_container_exited(struct container *c, int code)
{
	struct pod *p = c->pod;

	c->exit_code = code;
	if (is_restarted(c, code)) {
		c->state = CONTAINER_BACKOFF;
		loop_timer_arm(c->retry, p->node->restart_ms);
	} else {
		c->state = CONTAINER_EXITED;
	}
	event_of(c, "exited", NULL, NULL);
	if (c->init && !c->sidecar && code != 0 && c->state == CONTAINER_EXITED && !is_over(p)) {
		p->finishing = true;
		for (size_t i = 0; i < p->container_count; i++)
			container_kill(&p->containers[i], SIGKILL); /* sidecars */
		set_phase(p, POD_FAILED);
	}
	node_sync(p->node);
}

/* Nothing of it goes on; its processes are dead when this returns. */
static void stop_containers(struct pod *p)
{
	for (size_t i = 0; i < p->container_count; i++) {
		struct container *c = &p->containers[i];

		loop_timer_disarm(c->retry);
		c->state = CONTAINER_EXITED;
		if (c->pre_start != NULL)
			rpc_request_cancel(c->pre_start);
		container_end(c);
	}
}

void pod_reject(struct pod *p, const char *reason, const char *message)
{
	cJSON *o = cJSON_CreateObject();

	log_warn("pod rejected", KV("pod", p->name), KV("reason", reason), KV("message", message));
	set_text(&p->reason, reason);
	set_text(&p->message, message);
	cJSON_AddStringToObject(o, "reason", reason);
	cJSON_AddStringToObject(o, "message", message);
	control_event(p, "rejected", o);
	stop_containers(p);
	set_phase(p, POD_FAILED);
}

void pod_delete(struct pod *p)
{
	p->deleted = true;
	admission_forget(p->node, p);
	stop_containers(p);
	control_pod_changed(p);
	node_sync(p->node);
}

/* The kubelet looks at one of a pod's old and new containers, and takes a dead one for "not running": with no plugin
 * there the pod is then rejected (real-cluster: 3 of 5 with a restarted container, all with an init container). */
static bool is_at_risk(const struct pod *p)
{
	for (size_t i = 0; i < p->container_count; i++) {
		const struct container *c = &p->containers[i];

		if (c->grant_count > 0 && (c->starts > 1 || (c->init && !c->sidecar)))
			return true;
	}
	return false;
}

static const char *lost_resource(const struct pod *p)
{
	for (size_t i = 0; i < p->container_count; i++) {
		for (size_t k = 0; k < p->containers[i].grant_count; k++) {
			const char *resource = p->containers[i].grants[k].resource;
			const struct plugin *plugin = plugins_find(p->node, resource);

			if (plugin == NULL || plugin_healthy(plugin) == 0)
				return resource;
		}
	}
	return NULL;
}

void pods_readmit(struct node *n)
{
	LIST_FOR_EACH (&n->pods, it) {
		struct pod *p = HM_CONTAINER(it, struct pod, link);
		const char *lost = p->started && !is_over(p) ? lost_resource(p) : NULL;
		struct hm_err why;

		if (lost == NULL || !is_at_risk(p))
			continue;
		hm_err_set(&why, HM_EAGAIN,
			   "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate "
			   "unhealthy "
			   "devices %s, which is unexpected",
			   lost);
		pod_reject(p, "UnexpectedAdmissionError", why.msg);
	}
}

void pods_pause(struct node *n)
{
	LIST_FOR_EACH (&n->pods, it) {
		struct pod *p = HM_CONTAINER(it, struct pod, link);

		for (size_t i = 0; i < p->container_count; i++) {
			struct container *c = &p->containers[i];

			if (c->state != CONTAINER_STARTING)
				continue;
			c->state = CONTAINER_WAITING;
			rpc_request_cancel(c->pre_start);
		}
	}
}

static void container_fini(struct container *c)
{
	for (size_t i = 0; c->argv != NULL && c->argv[i] != NULL; i++)
		free(c->argv[i]);
	for (size_t i = 0; c->env != NULL && c->env[i] != NULL; i++)
		free(c->env[i]);
	for (size_t k = 0; k < c->grant_count; k++) {
		free(c->grants[k].resource);
		ids_clear(&c->grants[k].ids);
		str_fini(&c->grants[k].answer);
		str_fini(&c->grants[k].device_ids);
	}
	loop_timer_free(c->retry);
	free(c->argv);
	free(c->env);
	free(c->grants);
	free(c->name);
	free(c->log);
	free(c->message);
}

void pod_free(struct pod *p)
{
	if (p == NULL)
		return;
	link_remove(&p->link);
	for (size_t i = 0; i < p->container_count; i++)
		container_fini(&p->containers[i]);
	free(p->containers);
	free(p->uid);
	free(p->name);
	free(p->pod_namespace);
	free(p->reason);
	free(p->message);
	free(p);
}

void pod_adopt(struct node *n, struct pod *p)
{
	struct hm_err e;

	p->node = n;
	for (size_t i = 0; i < p->container_count; i++) {
		p->containers[i].pod = p;
		CHECK(loop_timer_new(n->loop, on_retry, &p->containers[i], &p->containers[i].retry, &e) == 0);
	}
	link_append(&n->pods, &p->link);
	node_sync(n);
}
