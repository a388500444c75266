#include "agent/processes/holders.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/processes/mounts.h"
#include "base/array.h"
#include "base/map.h"
#include "base/str.h"
#include "contract/container.h"
#include "core/fmt.h"
#include "core/num.h"
#include "io/file.h"
#include "region/process_id.h"

struct holders {
	struct map *views; /* mount namespace and root of who was looked into; a process may leave its root by chroot */
	struct map *mounted; /* what is mounted at the container's paths, as own_mounts_name says it */
	struct own_mounts *own;
	struct str text;
	size_t containers;
	bool failed; /* memory was short */
};

/* The namespace's inode, and its root as the kernel's text: neither leads into the container's file systems. */
static bool view_of(const char *proc, const char *pid, struct str *out)
{
	char path[PATH_MAX], root[PATH_MAX];
	struct stat ns;
	ssize_t n;

	hm_fmt(path, sizeof path, "%s/%s/ns/mnt", proc, pid);
	if (stat(path, &ns) < 0)
		return false;
	hm_fmt(path, sizeof path, "%s/%s/root", proc, pid);
	n = readlink(path, root, sizeof root);
	str_clear(out);
	str_addf(out, "%llu ", (unsigned long long)ns.st_ino);
	str_add_n(out, root, n > 0 ? (size_t)n : 0);
	return true;
}

static bool note_mount(void *arg, const char *file, const char *at)
{
	struct holders *h = arg;
	bool usage = strcmp(at, HM_CONTAINER_USAGE_DIR) == 0;

	if (!usage && strcmp(at, HM_CONTAINER_LIB) != 0)
		return true;
	h->containers += usage;
	h->failed = map_put(h->mounted, file, h, NULL) < 0;
	return !h->failed;
}

static void look_into(struct holders *h, const char *proc, const char *pid)
{
	hm_auto_str view = { 0 };

	if (!view_of(proc, pid, &view) || (!str_failed(&view) && map_get(h->views, str_text(&view)) != NULL))
		return;
	if (!mounts_visit(proc, pid, &h->text, note_mount, h)) {
		h->failed = str_failed(&h->text);
		return;
	}
	h->failed |= str_failed(&view) || map_put(h->views, str_text(&view), h, NULL) < 0;
}

static bool is_pid(const char *name)
{
	uint64_t pid;

	return num_u64_str(name, INT32_MAX, &pid);
}

int holders_scan(const char *proc, struct holders **out, struct hm_err *e)
{
	hm_auto(holders) *h = calloc(1, sizeof *h);
	DIR *dir;
	struct dirent *d;

	if (h == NULL || (h->views = map_new()) == NULL || (h->mounted = map_new()) == NULL)
		return hm_err_set(e, HM_ENOMEM, "look at running containers");
	if (own_mounts_new(&h->own, e) < 0)
		return -e->code;
	dir = opendir(proc);
	if (dir == NULL)
		return hm_err_errno(e, errno, "read %s", proc);
	while (!h->failed && (d = readdir(dir)) != NULL)
		if (is_pid(d->d_name))
			look_into(h, proc, d->d_name);
	closedir(dir);
	if (h->failed)
		return hm_err_set(e, HM_ENOMEM, "look at running containers");
	str_fini(&h->text);
	*out = HM_STEAL(h);
	return 0;
}

void holders_free(struct holders *h)
{
	if (h == NULL)
		return;
	map_free(h->views);
	map_free(h->mounted);
	own_mounts_free(h->own);
	str_fini(&h->text);
	free(h);
}

bool holders_mounted(const struct holders *h, const char *host_path)
{
	hm_auto_str name = { 0 };

	return own_mounts_name(h->own, host_path, &name) && map_get(h->mounted, str_text(&name)) != NULL;
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
