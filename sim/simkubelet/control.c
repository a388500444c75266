#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "core/check.h"
#include "sim/simkubelet/node.h"

/*
 * One request a line: {"cmd":"run","pod":{...},"wait":"none|running|done"}, {"cmd":"status"},
 * {"cmd":"delete|kill","namespace","name","container","signal"}, {"cmd":"wait","resource","count"},
 * {"cmd":"kubelet-stop"}, {"cmd":"kubelet-start|kubelet-restart","down_ms","gap_ms"}, {"cmd":"stop"}.
 * Answers are lines too: events, then one with "done".
 */
enum { MAX_LINE = 1024 * 1024, SEND_TIMEOUT_S = 2, ACCEPT_PAUSE_MS = 100 };
enum wait_for { WAIT_NONE, WAIT_RUNNING, WAIT_DONE };

struct conn {
	struct link link;
	struct control *control;
	int fd;
	struct loop_fd *watch;
	struct str in;
	struct pod *pod; /* whose events it gets */
	enum wait_for wait;
	char *resource; /* that it waits for */
	uint64_t count;
	bool broken; /* to be freed from the loop */
};

struct control {
	struct node *node;
	int fd;
	struct loop_fd *watch;
	struct loop_timer *resume;
	struct link conns;
};

static void conn_free(struct conn *c)
{
	link_remove(&c->link);
	loop_fd_free(c->watch);
	close(c->fd);
	str_fini(&c->in);
	free(c->resource);
	free(c);
}

/* Takes o. */
static void send_line(struct conn *c, cJSON *o)
{
	char *text = cJSON_PrintUnformatted(o);
	hm_auto_str line = { 0 };

	CHECK(text != NULL);
	str_add(&line, text);
	str_addc(&line, '\n');
	cJSON_free(text);
	cJSON_Delete(o);
	if (!c->broken && send(c->fd, line.p, line.n, MSG_NOSIGNAL) != (ssize_t)line.n) {
		c->broken = true;
		shutdown(c->fd, SHUT_RDWR); /* the loop sees the end and frees it */
	}
}

static cJSON *done_object(bool ok)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddBoolToObject(o, "done", true);
	cJSON_AddBoolToObject(o, "ok", ok);
	return o;
}

static void send_error(struct conn *c, const struct hm_err *e)
{
	cJSON *o = done_object(false);

	cJSON_AddStringToObject(o, "error", e->msg);
	send_line(c, o);
}

/* ---- events ---- */

void control_event(struct pod *p, const char *event, cJSON *more)
{
	LIST_FOR_EACH (&p->node->control->conns, it) {
		struct conn *c = HM_CONTAINER(it, struct conn, link);
		cJSON *o, *member;

		if (c->pod != p)
			continue;
		o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "event", event);
		cJSON_AddStringToObject(o, "pod", p->name);
		cJSON_ArrayForEach(member, more)
			cJSON_AddItemToObject(o, member->string, cJSON_Duplicate(member, true));
		send_line(c, o);
	}
	cJSON_Delete(more);
}

void control_pod_changed(struct pod *p)
{
	bool over = p->deleted || p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;

	LIST_FOR_EACH (&p->node->control->conns, it) {
		struct conn *c = HM_CONTAINER(it, struct conn, link);
		cJSON *o;

		if (c->pod != p || !(over || (c->wait == WAIT_RUNNING && p->phase == POD_RUNNING)))
			continue;
		c->pod = NULL;
		o = done_object(!p->deleted && p->phase != POD_FAILED);
		cJSON_AddStringToObject(o, "phase", p->deleted ? "Deleted" : pod_phase_name(p->phase));
		send_line(c, o);
	}
}

void control_resources_changed(struct node *n)
{
	if (n->control == NULL)
		return;
	LIST_FOR_EACH (&n->control->conns, it) {
		struct conn *c = HM_CONTAINER(it, struct conn, link);
		const struct plugin *p = c->resource == NULL ? NULL : plugins_find(n, c->resource);

		if (c->resource == NULL || (p == NULL ? 0 : plugin_healthy(p)) < c->count)
			continue;
		free(HM_STEAL(c->resource));
		send_line(c, done_object(true));
	}
}

/* ---- commands ---- */

static int command_run(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	static const char *const names[] = { "none", "running", "done" };
	struct node *n = c->control->node;
	hm_auto(pod) *p = NULL;
	const char *wait = "done";
	struct json_at spec;

	if (json_object(at, "pod", JSON_REQUIRED, &spec, e) < 0 || json_text(at, "wait", JSON_OPTIONAL, &wait, e) < 0 ||
	    pod_from_json(&spec, &p, e) < 0)
		return -e->code;
	for (c->wait = WAIT_NONE; strcmp(names[c->wait], wait) != 0; c->wait++) {
		if (c->wait == WAIT_DONE)
			return json_err(at, "wait", e, "\"%s\" is not none, running or done", wait);
	}
	if (pods_find(n, p->pod_namespace, p->name) != NULL)
		return hm_err_set(e, HM_EEXIST, "pod %s/%s exists already", p->pod_namespace, p->name);
	if (c->wait == WAIT_NONE)
		send_line(c, done_object(true));
	else
		c->pod = p;
	pod_adopt(n, HM_STEAL(p));
	return 0;
}

static int find_pod(const struct conn *c, const struct json_at *at, struct pod **out, struct hm_err *e)
{
	const char *name, *pod_namespace = "default";

	if (json_text(at, "name", JSON_REQUIRED, &name, e) < 0 ||
	    json_text(at, "namespace", JSON_OPTIONAL, &pod_namespace, e) < 0)
		return -e->code;
	*out = pods_find(c->control->node, pod_namespace, name);
	return *out != NULL ? 0 : hm_err_set(e, HM_ENOTFOUND, "no pod %s/%s", pod_namespace, name);
}

static int command_delete(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	struct pod *p;

	if (find_pod(c, at, &p, e) < 0)
		return -e->code;
	pod_delete(p);
	send_line(c, done_object(true));
	return 0;
}

static int command_kill(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	const char *container = NULL;
	uint64_t signo = SIGKILL;
	struct pod *p;

	if (find_pod(c, at, &p, e) < 0 || json_text(at, "container", JSON_OPTIONAL, &container, e) < 0 ||
	    json_u64(at, "signal", JSON_OPTIONAL, 1, 64, &signo, e) < 0)
		return -e->code;
	for (size_t i = 0; i < p->container_count; i++) {
		struct container *k = &p->containers[i];

		if (container != NULL ? strcmp(k->name, container) != 0 : k->init)
			continue;
		container_kill(k, (int)signo);
		send_line(c, done_object(true));
		return 0;
	}
	return hm_err_set(e, HM_ENOTFOUND, "pod %s has no container %s", p->name, container == NULL ? "" : container);
}

static int command_wait(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	const char *resource;

	c->count = 1;
	if (json_text(at, "resource", JSON_REQUIRED, &resource, e) < 0 ||
	    json_u64(at, "count", JSON_OPTIONAL, 0, UINT32_MAX, &c->count, e) < 0)
		return -e->code;
	free(c->resource);
	c->resource = node_text(resource);
	control_resources_changed(c->control->node);
	return 0;
}

static int command_kubelet_stop(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	(void)at, (void)e;
	node_kubelet_stop(c->control->node);
	send_line(c, done_object(true));
	return 0;
}

static int read_start(const struct json_at *at, uint64_t *down_ms, uint64_t *gap_ms, struct hm_err *e)
{
	if (json_u64(at, "down_ms", JSON_OPTIONAL, 0, 600000, down_ms, e) < 0 ||
	    json_u64(at, "gap_ms", JSON_OPTIONAL, 0, 60000, gap_ms, e) < 0)
		return -e->code;
	return 0;
}

static int command_kubelet_start(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	uint64_t down_ms = 0, gap_ms = 0;

	if (read_start(at, &down_ms, &gap_ms, e) < 0)
		return -e->code;
	node_kubelet_start(c->control->node, down_ms, gap_ms);
	send_line(c, done_object(true));
	return 0;
}

static int command_kubelet_restart(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	uint64_t down_ms = 100, gap_ms = 0;

	if (read_start(at, &down_ms, &gap_ms, e) < 0)
		return -e->code;
	node_kubelet_stop(c->control->node);
	node_kubelet_start(c->control->node, down_ms, gap_ms);
	send_line(c, done_object(true));
	return 0;
}

static cJSON *container_status(const struct container *c)
{
	cJSON *o = cJSON_CreateObject(), *ids = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", c->name);
	cJSON_AddBoolToObject(o, "init", c->init);
	cJSON_AddBoolToObject(o, "asks", c->grant_count > 0);
	cJSON_AddStringToObject(o, "state", container_state_name(c->state));
	cJSON_AddNumberToObject(o, "pid", c->pid);
	cJSON_AddNumberToObject(o, "restarts", c->starts > 0 ? c->starts - 1 : 0);
	cJSON_AddNumberToObject(o, "exit_code", c->exit_code);
	cJSON_AddStringToObject(o, "log", c->log == NULL ? "" : c->log);
	cJSON_AddStringToObject(o, "message", c->message == NULL ? "" : c->message);
	for (size_t k = 0; k < c->grant_count; k++)
		cJSON_AddItemToObject(ids, c->grants[k].resource,
				      cJSON_CreateStringArray((const char *const *)c->grants[k].ids.list,
							      (int)c->grants[k].ids.count));
	cJSON_AddItemToObject(o, "ids", ids);
	return o;
}

static cJSON *pod_status(const struct pod *p)
{
	cJSON *o = cJSON_CreateObject(), *containers = cJSON_CreateArray();

	cJSON_AddStringToObject(o, "name", p->name);
	cJSON_AddStringToObject(o, "namespace", p->pod_namespace);
	cJSON_AddStringToObject(o, "uid", p->uid);
	cJSON_AddStringToObject(o, "phase", pod_phase_name(p->phase));
	cJSON_AddBoolToObject(o, "admitted", p->started);
	cJSON_AddStringToObject(o, "reason", p->reason == NULL ? "" : p->reason);
	cJSON_AddStringToObject(o, "message", p->message == NULL ? "" : p->message);
	for (size_t i = 0; i < p->container_count; i++)
		cJSON_AddItemToArray(containers, container_status(&p->containers[i]));
	cJSON_AddItemToObject(o, "containers", containers);
	return o;
}

static int command_status(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	struct node *n = c->control->node;
	cJSON *o = done_object(true), *resources = cJSON_AddObjectToObject(o, "resources");
	cJSON *pods;

	(void)at, (void)e;
	cJSON_AddBoolToObject(o, "kubelet", n->kubelet_up);
	cJSON_AddBoolToObject(o, "readmitting", n->readmitting);
	LIST_FOR_EACH (&n->plugins, it) {
		const struct plugin *p = HM_CONTAINER(it, struct plugin, link);
		cJSON *r = cJSON_AddObjectToObject(resources, p->resource);

		cJSON_AddNumberToObject(r, "capacity", (double)p->device_count);
		cJSON_AddNumberToObject(r, "allocatable", (double)plugin_healthy(p));
	}
	pods = cJSON_AddArrayToObject(o, "pods");
	LIST_FOR_EACH (&n->pods, it) {
		const struct pod *p = HM_CONTAINER(it, struct pod, link);

		if (!p->deleted)
			cJSON_AddItemToArray(pods, pod_status(p));
	}
	send_line(c, o);
	return 0;
}

static int command_stop(struct conn *c, const struct json_at *at, struct hm_err *e)
{
	(void)at, (void)e;
	send_line(c, done_object(true));
	loop_stop(c->control->node->loop);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct conn *c, const struct json_at *at, struct hm_err *e);
} commands[] = {
	{ "run", command_run },
	{ "status", command_status },
	{ "delete", command_delete },
	{ "kill", command_kill },
	{ "wait", command_wait },
	{ "kubelet-stop", command_kubelet_stop },
	{ "kubelet-start", command_kubelet_start },
	{ "kubelet-restart", command_kubelet_restart },
	{ "stop", command_stop },
};

static int run_command(struct conn *c, const char *text, size_t n, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct json_at at;
	const char *name;

	if (json_parse(text, n, &tree, e) < 0)
		return -e->code;
	at = json_root(tree);
	if (!cJSON_IsObject(tree))
		return hm_err_set(e, HM_EINVAL, "a request is a JSON object with \"cmd\"");
	if (json_text(&at, "cmd", JSON_REQUIRED, &name, e) < 0)
		return -e->code;
	for (size_t i = 0; i < HM_COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run(c, &at, e);
	}
	return hm_err_set(e, HM_EINVAL, "no command \"%s\"", name);
}

/* ---- connections ---- */

static void handle_lines(struct conn *c)
{
	char *newline;

	while (c->in.n > 0 && (newline = memchr(c->in.p, '\n', c->in.n)) != NULL) {
		size_t n = (size_t)(newline - c->in.p);
		struct hm_err e;

		if (run_command(c, c->in.p, n, &e) < 0)
			send_error(c, &e);
		memmove(c->in.p, newline + 1, c->in.n - n - 1);
		c->in.n -= n + 1;
	}
}

static void on_readable(void *arg, int events)
{
	struct conn *c = arg;
	char bytes[65536];
	ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || c->broken || c->in.n + (size_t)n > MAX_LINE) {
		conn_free(c);
		return;
	}
	str_add_n(&c->in, bytes, (size_t)n);
	handle_lines(c);
}

/* Out of descriptors: the socket stays readable, so waiting for it would spin. */
static void pause_accepting(struct control *c)
{
	if (loop_fd_set(c->watch, 0) == 0)
		loop_timer_arm(c->resume, ACCEPT_PAUSE_MS);
}

static void on_resume(void *arg)
{
	struct control *c = arg;

	if (loop_fd_set(c->watch, LOOP_READ) < 0)
		loop_timer_arm(c->resume, ACCEPT_PAUSE_MS);
}

static void on_accept(void *arg, int events)
{
	struct control *control = arg;
	const struct timeval timeout = { .tv_sec = SEND_TIMEOUT_S };
	int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC);
	struct conn *c;
	struct hm_err e;

	(void)events;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(control);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
	c = node_alloc(1, sizeof *c);
	c->control = control;
	c->fd = fd;
	link_append(&control->conns, &c->link);
	CHECK(loop_fd_new(control->node->loop, fd, LOOP_READ, on_readable, c, &c->watch, &e) == 0);
}

int control_new(struct node *n, struct hm_err *e)
{
	static const struct sockaddr_un address = { AF_UNIX, "simkubelet.sock" }; /* in n->dir, where we are */
	struct control *c = node_alloc(1, sizeof *c);

	list_init(&c->conns);
	c->node = n;
	n->control = c;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unlink(address.sun_path);
	if (c->fd < 0 || bind(c->fd, (const struct sockaddr *)&address, sizeof address) < 0 || listen(c->fd, 64) < 0)
		return hm_err_errno(e, errno, "control socket %s/%s", n->dir, address.sun_path);
	if (loop_timer_new(n->loop, on_resume, c, &c->resume, e) < 0)
		return -e->code;
	return loop_fd_new(n->loop, c->fd, LOOP_READ, on_accept, c, &c->watch, e);
}

void control_free(struct control *c)
{
	if (c == NULL)
		return;
	while (!list_empty(&c->conns))
		conn_free(HM_CONTAINER(list_first(&c->conns), struct conn, link));
	loop_fd_free(c->watch);
	loop_timer_free(c->resume);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}
