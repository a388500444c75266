#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "core/check.h"
#include "io/file.h"
#include "kubelet/pb.h"
#include "kubelet/proto/device_plugin.pb-c.h"
#include "sim/simkubelet/jail.h"
#include "sim/simkubelet/node.h"

/*
 * What a container gets, the later winning over the earlier (tests on containerd; real-cluster facts):
 *   env:    the node's, of the Allocate answer, the pod's own, of the CDI specs
 *   mounts: the node's --bind, of the Allocate answer, of the CDI specs
 */
enum { MAX_SPEC_BYTES = 4 * 1024 * 1024 };
#define CDI_ANNOTATION_PREFIX "cdi.k8s.io/"

/* Everything a start needs; all owned. `edits` are those of the CDI specs. */
struct setup {
	struct cdi_edits answer, edits;
	struct ids unresolved;
	struct jail_mount *mounts;
	size_t mount_count, mount_cap;
	char **env;
	size_t env_count, env_cap;
};

static void setup_fini(struct setup *s)
{
	for (size_t i = 0; i < s->env_count; i++)
		free(s->env[i]);
	free(s->env);
	free(s->mounts);
	cdi_edits_fini(&s->answer);
	cdi_edits_fini(&s->edits);
	ids_clear(&s->unresolved);
}

/* ---- CDI ---- */

static bool is_spec_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0);
}

/* Edits of "kind=device" in this file are appended; how many devices of that name it has. */
static size_t edits_of_file(const char *path, const char *kind, const char *device, struct cdi_edits *to)
{
	hm_auto_str text = { 0 };
	hm_auto(cdi_spec) *spec = NULL;
	const struct cdi_device *d;
	struct hm_err e;

	if (file_read(path, MAX_SPEC_BYTES, &text, &e) < 0 || cdi_spec_parse(str_text(&text), text.n, &spec, &e) < 0) {
		log_warn("CDI spec left out", KV("path", path), KV_ERR(&e));
		return 0;
	}
	d = strcmp(spec->kind, kind) == 0 ? cdi_spec_device(spec, device) : NULL;
	if (d == NULL)
		return 0;
	CHECK(cdi_edits_append(to, &spec->edits) == 0 && cdi_edits_append(to, &d->edits) == 0);
	return 1;
}

static size_t edits_of_folder(const char *folder, const char *kind, const char *device, struct cdi_edits *to)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t found = 0;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		hm_auto_str path = { 0 };

		if (!is_spec_name(entry->d_name))
			continue;
		str_addf(&path, "%s/%s", folder, entry->d_name);
		found += edits_of_file(str_text(&path), kind, device, to);
	}
	closedir(dir);
	return found;
}

/* A name that stands nowhere, or in two files, is not resolved. */
static void resolve(const struct node *n, const char *name, struct setup *s)
{
	struct cdi_edits edits = { 0 };
	char *kind = node_text(name), *equals = strchr(kind, '='), *folders = node_text(n->cdi_dirs), *rest = folders;
	size_t found = 0;

	if (equals != NULL) {
		*equals = '\0';
		for (char *folder; (folder = strsep(&rest, ",")) != NULL;)
			found += edits_of_folder(folder, kind, equals + 1, &edits);
	}
	if (found == 1)
		CHECK(cdi_edits_append(&s->edits, &edits) == 0);
	else
		ids_add(&s->unresolved, name);
	cdi_edits_fini(&edits);
	free(kind);
	free(folders);
}

/* ---- the plugin's answers ---- */

static void apply_answer(const struct node *n, const V1beta1__ContainerAllocateResponse *m, struct setup *s)
{
	for (size_t i = 0; i < m->n_envs; i++)
		CHECK(cdi_add_env(&s->answer, m->envs[i]->key, m->envs[i]->value) != -HM_ENOMEM);
	for (size_t i = 0; i < m->n_mounts; i++)
		CHECK(cdi_add_mount(&s->answer, m->mounts[i]->host_path, m->mounts[i]->container_path,
				    m->mounts[i]->read_only) != -HM_ENOMEM);
	for (size_t i = 0; i < m->n_devices; i++)
		CHECK(cdi_add_node(&s->answer, m->devices[i]->container_path, m->devices[i]->host_path,
				   m->devices[i]->permissions) != -HM_ENOMEM);
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		resolve(n, m->cdi_devices[i]->name, s);
	for (size_t i = 0; i < m->n_annotations; i++) {
		char *list, *rest;

		if (strncmp(m->annotations[i]->key, CDI_ANNOTATION_PREFIX, strlen(CDI_ANNOTATION_PREFIX)) != 0)
			continue;
		list = rest = node_text(m->annotations[i]->value);
		for (char *name; (name = strsep(&rest, ",")) != NULL;)
			resolve(n, name, s);
		free(list);
	}
}

static int apply_answers(const struct container *c, struct setup *s, struct hm_err *e)
{
	for (size_t i = 0; i < c->grant_count; i++) {
		const struct str *answer = &c->grants[i].answer;
		pb_auto V1beta1__ContainerAllocateResponse *m =
			pb_unpack(&v1beta1__container_allocate_response__descriptor, "ContainerAllocateResponse",
				  str_text(answer), answer->n, e);

		if (m == NULL)
			return -e->code;
		apply_answer(c->pod->node, m, s);
	}
	if (s->unresolved.count > 0) {
		hm_auto_str names = { 0 };

		for (size_t i = 0; i < s->unresolved.count; i++)
			str_addf(&names, "%s%s", i > 0 ? ", " : "", s->unresolved.list[i]);
		return hm_err_set(
			e, HM_ENOTFOUND,
			"failed to create containerd container: CDI device injection failed: unresolvable CDI "
			"devices %s",
			str_text(&names));
	}
	return 0;
}

/* ---- environment and mounts ---- */

static void set_env(struct setup *s, const char *pair)
{
	size_t name = (size_t)(strchrnul(pair, '=') - pair) + 1;

	for (size_t i = 0; i < s->env_count; i++) {
		if (strncmp(s->env[i], pair, name) == 0) {
			free(s->env[i]);
			s->env[i] = node_text(pair);
			return;
		}
	}
	CHECK(HM_PUSH(s->env, s->env_count, s->env_cap, node_text(pair)));
}

static void set_envs(struct setup *s, const struct cdi_edits *edits)
{
	for (size_t i = 0; i < edits->env_count; i++) {
		hm_auto_str pair = { 0 };

		str_add(&pair, edits->envs[i].name);
		str_addc(&pair, '=');
		str_add(&pair, edits->envs[i].value);
		set_env(s, str_text(&pair));
	}
}

static void make_env(const struct container *c, struct setup *s)
{
	hm_auto_str host = { 0 };

	str_addf(&host, "HOSTNAME=%s", c->pod->name);
	set_env(s, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	set_env(s, str_text(&host));
	set_env(s, "HOME=/root");
	set_envs(s, &s->answer);
	for (size_t i = 0; c->env[i] != NULL; i++)
		set_env(s, c->env[i]);
	set_envs(s, &s->edits);
	CHECK(HM_PUSH(s->env, s->env_count, s->env_cap, NULL));
	s->env_count--; /* the terminator is not counted */
}

static unsigned long flags_of(const struct cdi_mount *m)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} known[] = { { "ro", MS_RDONLY }, { "nosuid", MS_NOSUID }, { "nodev", MS_NODEV }, { "noexec", MS_NOEXEC } };
	unsigned long flags = 0;

	for (size_t i = 0; i < m->option_count; i++) {
		for (size_t k = 0; k < HM_COUNT(known); k++)
			flags |= strcmp(m->options[i], known[k].name) == 0 ? known[k].flag : 0;
	}
	return flags;
}

static void add_mount(struct setup *s, const char *host, const char *container, unsigned long flags)
{
	CHECK(HM_PUSH(s->mounts, s->mount_count, s->mount_cap, (struct jail_mount) { host, container, flags }));
}

static void add_mounts(struct setup *s, const struct cdi_edits *edits, const char *leave_out)
{
	for (size_t i = 0; i < edits->node_count; i++) {
		const struct cdi_node *n = &edits->nodes[i];

		add_mount(s, n->host_path != NULL && n->host_path[0] != '\0' ? n->host_path : n->path, n->path, 0);
	}
	for (size_t i = 0; i < edits->mount_count; i++) {
		const struct cdi_mount *m = &edits->mounts[i];

		if (strcmp(m->container_path, leave_out) != 0)
			add_mount(s, m->host_path, m->container_path, flags_of(m));
	}
}

/* "/a:/b,/c:/d"; the text must outlive the start. */
static void add_binds(struct setup *s, char *text)
{
	for (char *one; (one = strsep(&text, ",")) != NULL;) {
		char *colon = strchr(one, ':');

		if (colon == NULL)
			continue;
		*colon = '\0';
		add_mount(s, one, colon + 1, 0);
	}
}

/* ---- start and end ---- */

/* An earlier run's log is kept as "<log>.1", as `kubectl logs --previous` shows it. */
static int open_log(struct container *c, struct hm_err *e)
{
	hm_auto_str path = { 0 }, old = { 0 };
	int fd;

	str_addf(&path, "%s/logs/%s_%s_%s.log", c->pod->node->dir, c->pod->pod_namespace, c->pod->name, c->name);
	str_addf(&old, "%s.1", str_text(&path));
	if (rename(str_text(&path), str_text(&old)) < 0 && errno != ENOENT)
		return hm_err_errno(e, errno, "keep %s", str_text(&path));
	fd = open(str_text(&path), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return hm_err_errno(e, errno, "%s", str_text(&path));
	free(c->log);
	c->log = node_text(str_text(&path));
	return fd;
}

static int start(struct container *c, struct setup *s, char *binds, struct hm_err *e)
{
	hm_auto_str stage = { 0 };
	hm_auto_fd log = -1;
	struct jail j = { .argv = c->argv, .user = c->run_as_user, .group = c->run_as_group };

	if (apply_answers(c, s, e) < 0)
		return -e->code;
	make_env(c, s);
	add_binds(s, binds);
	add_mounts(s, &s->answer, c->pod->node->leave_out);
	add_mounts(s, &s->edits, c->pod->node->leave_out);
	log = open_log(c, e);
	if (log < 0)
		return log;
	str_addf(&stage, "%s/stage", c->pod->node->dir);
	j.stage = str_text(&stage);
	j.mounts = s->mounts;
	j.mount_count = s->mount_count;
	j.env = s->env;
	j.log_fd = log;
	j.user_namespace = c->pod->node->user_namespace;
	if (jail_start(&j, &c->pid, e) < 0) {
		c->pid = 0;
		return hm_err_wrap(e, "failed to create the container");
	}
	return 0;
}

int container_start(struct container *c, struct hm_err *e)
{
	struct setup s = { 0 };
	char *binds = node_text(c->pod->node->binds);
	int r = start(c, &s, binds, e);

	setup_fini(&s);
	free(binds);
	return r;
}

static struct container *by_pid(const struct node *n, pid_t pid)
{
	LIST_FOR_EACH (&n->pods, it) {
		struct pod *p = HM_CONTAINER(it, struct pod, link);

		for (size_t i = 0; i < p->container_count; i++) {
			if (p->containers[i].pid == pid)
				return &p->containers[i];
		}
	}
	return NULL;
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void container_reap(struct node *n)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct container *c = by_pid(n, pid);

		if (c == NULL)
			continue;
		c->pid = 0;
		pod_container_exited(c, code_of(status));
	}
}

void container_kill(struct container *c, int signo)
{
	if (c->pid > 0)
		kill(c->pid, signo);
}

void container_end(struct container *c)
{
	int status;
	pid_t got;

	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	do
		got = waitpid(c->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (got == c->pid)
		c->exit_code = code_of(status);
	c->pid = 0;
}
