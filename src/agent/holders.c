#include "agent/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "contract/container.h"
#include "core/fmt.h"
#include "core/num.h"
#include "io/file.h"
#include "region/process_id.h"

/* What processes see the same files by. A process may have left its container's root by chroot. */
struct view {
	ino_t mount_namespace;
	struct file_identity root;
};

struct holders {
	struct view *views; /* already looked into */
	size_t view_count, view_cap;
	struct file_identity *mounted;
	size_t mounted_count, mounted_cap, containers;
};

static const char *const container_paths[] = { HM_CONTAINER_USAGE_DIR, HM_CONTAINER_LIB };

static bool view_of(const char *proc, const char *pid, struct view *out)
{
	char path[PATH_MAX];
	struct stat ns, root;

	hm_fmt(path, sizeof path, "%s/%s/ns/mnt", proc, pid);
	if (stat(path, &ns) < 0)
		return false;
	hm_fmt(path, sizeof path, "%s/%s/root", proc, pid);
	if (stat(path, &root) < 0)
		return false;
	*out = (struct view) { ns.st_ino, { root.st_dev, root.st_ino } };
	return true;
}

static bool is_seen(const struct holders *h, const struct view *v)
{
	for (size_t i = 0; i < h->view_count; i++)
		if (h->views[i].mount_namespace == v->mount_namespace && file_identity_equal(h->views[i].root, v->root))
			return true;
	return false;
}

/* What the container has at `inside`. Its own symbolic links must not lead out of its root: a container could point at
 * another's folder and so keep that one's slot taken. */
static bool stat_inside(const char *root, const char *inside, struct stat *st)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	hm_auto_fd at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	hm_auto_fd fd = -1;

	if (at < 0)
		return false;
	fd = (int)syscall(SYS_openat2, at, inside, &how, sizeof how);
	return fd >= 0 && fstat(fd, st) == 0;
}

bool holder_usage_folder(const char *proc, unsigned pid, struct file_identity *out)
{
	char path[PATH_MAX];
	struct stat st;

	hm_fmt(path, sizeof path, "%s/%u/root", proc, pid);
	if (!stat_inside(path, HM_CONTAINER_USAGE_DIR, &st))
		return false;
	*out = (struct file_identity) { st.st_dev, st.st_ino };
	return true;
}

/* False where memory is short. */
static bool look_into(struct holders *h, const char *proc, const char *pid)
{
	char path[PATH_MAX];
	struct view v;
	struct stat st;

	if (!view_of(proc, pid, &v) || is_seen(h, &v))
		return true;
	for (size_t i = 0; i < HM_COUNT(container_paths); i++) {
		hm_fmt(path, sizeof path, "%s/%s/root", proc, pid);
		if (!stat_inside(path, container_paths[i], &st))
			continue;
		h->containers += i == 0;
		if (!HM_PUSH(h->mounted, h->mounted_count, h->mounted_cap,
			     (struct file_identity) { st.st_dev, st.st_ino }))
			return false;
	}
	return HM_PUSH(h->views, h->view_count, h->view_cap, v);
}

static bool is_pid(const char *name)
{
	uint64_t pid;

	return num_u64_str(name, INT32_MAX, &pid);
}

int holders_scan(const char *proc, struct holders **out, struct hm_err *e)
{
	hm_auto(holders) *h = calloc(1, sizeof *h);
	DIR *dir = opendir(proc);
	struct dirent *d;
	bool ok = h != NULL;

	if (dir == NULL)
		return hm_err_errno(e, errno, "read %s", proc);
	while (ok && (d = readdir(dir)) != NULL)
		ok = !is_pid(d->d_name) || look_into(h, proc, d->d_name);
	closedir(dir);
	if (!ok)
		return hm_err_set(e, HM_ENOMEM, "look at running containers");
	*out = HM_STEAL(h);
	return 0;
}

void holders_free(struct holders *h)
{
	if (h == NULL)
		return;
	free(h->views);
	free(h->mounted);
	free(h);
}

bool holders_mounted(const struct holders *h, const char *host_path)
{
	struct stat st;

	if (stat(host_path, &st) < 0)
		return false;
	for (size_t i = 0; i < h->mounted_count; i++)
		if (file_identity_equal(h->mounted[i], (struct file_identity) { st.st_dev, st.st_ino }))
			return true;
	return false;
}

size_t holders_containers(const struct holders *h)
{
	return h->containers;
}

/* What there was when it was first asked. /proc is looked through once, whatever a region says: the region is its
 * container's to write, and 1,024 invented processes must not cost 1,024 looks. */
struct process {
	char pid[12]; /* as the folder's name */
	ino_t pid_namespace;
	bool known; /* the rest; 0 where the process is gone by now */
	uint64_t inner_pid, start_time;
};

struct holder_pids {
	char *proc;
	bool looked;
	struct process *processes;
	size_t count, cap;
	ino_t own_namespace;
	bool incomplete; /* memory was short, or /proc cannot be read: nobody is called dead */
};

static void note_process(struct holder_pids *h, const char *pid)
{
	struct process p = { .known = false };
	char path[PATH_MAX];
	struct stat ns;

	hm_fmt(path, sizeof path, "%s/%s/ns/pid", h->proc, pid);
	if (hm_fmt(p.pid, sizeof p.pid, "%s", pid) >= sizeof p.pid || stat(path, &ns) < 0)
		return;
	p.pid_namespace = ns.st_ino;
	if (!HM_PUSH(h->processes, h->count, h->cap, p))
		h->incomplete = true;
}

static void look(struct holder_pids *h)
{
	DIR *dir = opendir(h->proc);
	char path[PATH_MAX];
	struct dirent *d;
	struct stat ns;

	hm_fmt(path, sizeof path, "%s/self/ns/pid", h->proc);
	h->own_namespace = stat(path, &ns) == 0 ? ns.st_ino : 0;
	h->looked = true;
	h->incomplete = dir == NULL;
	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (is_pid(d->d_name))
			note_process(h, d->d_name);
	if (dir != NULL)
		closedir(dir);
}

static void learn(const struct holder_pids *h, struct process *p)
{
	hm_auto_str text = { 0 };
	char path[PATH_MAX];
	struct hm_err e;
	bool dead;

	p->known = true;
	hm_fmt(path, sizeof path, "%s/%s/status", h->proc, p->pid);
	if (file_read(path, 65536, &text, &e) < 0 || !process_status_inner_pid(str_text(&text), text.n, &p->inner_pid))
		return;
	hm_fmt(path, sizeof path, "%s/%s/stat", h->proc, p->pid);
	if (file_read(path, 65536, &text, &e) < 0 ||
	    !process_stat_parse(str_text(&text), text.n, &p->start_time, &dead))
		p->inner_pid = 0;
}

int holder_pids_new(const char *proc, struct holder_pids **out, struct hm_err *e)
{
	hm_auto(holder_pids) *h = calloc(1, sizeof *h);

	if (h == NULL || (h->proc = strdup(proc)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "look at running processes");
	*out = HM_STEAL(h);
	return 0;
}

void holder_pids_free(struct holder_pids *h)
{
	if (h == NULL)
		return;
	free(h->proc);
	free(h->processes);
	free(h);
}

bool holder_pids_sees_containers(const struct holder_pids *h)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->processes[i].pid_namespace != h->own_namespace)
			return true;
	return false;
}

bool holder_pids_alive(const struct region_process *p, void *arg)
{
	struct holder_pids *h = arg;

	/* Not before it is asked: who stands in the region started before this look. */
	if (!h->looked)
		look(h);
	if (h->incomplete)
		return true; /* a charge is not given back on a guess */
	for (size_t i = 0; i < h->count; i++) {
		struct process *at = &h->processes[i];

		if (at->pid_namespace != p->pid_namespace)
			continue;
		if (!at->known)
			learn(h, at);
		if (at->inner_pid != 0 && at->inner_pid == p->pid && at->start_time == p->start_time)
			return true;
	}
	return false;
}
