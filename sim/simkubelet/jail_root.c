#include "sim/simkubelet/jail_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/*
 * 1. All mounts private; a tmpfs on the stage holds the overlay's upper layer. From here on nothing reaches the
 * machine.
 * 2. Overlay: lower layer is the machine's root file system. Other file systems are not part of that: they are bound
 * in.
 * 3. proc of this pid namespace, sys, a small /dev, an empty /run.
 * 4. Sources of the jail's mounts are opened while their paths still mean the machine's; then chroot; then each is
 * bound by /proc/self/fd, so that links in container paths can only lead inside.
 */
#define ROOT "merged"

static int make_parents(char *path, struct hm_err *e)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return hm_err_errno(e, errno, "mkdir %s", path);
		*slash = '/';
	}
	return 0;
}

/* An empty file or folder at path, with parents, unless something is there. */
static int make_target(const char *path, bool folder, struct hm_err *e)
{
	char copy[PATH_MAX];
	int fd;

	if (strlen(path) >= sizeof copy)
		return hm_err_set(e, HM_EINVAL, "path of %zu bytes is too long", strlen(path));
	memcpy(copy, path, strlen(path) + 1);
	if (make_parents(copy, e) < 0)
		return -e->code;
	if (folder) {
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return hm_err_errno(e, errno, "mkdir %s", path);
		return 0;
	}
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0 && errno != EISDIR && errno != ENXIO && errno != EROFS && errno != EACCES)
		return hm_err_errno(e, errno, "create %s", path);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* Flags that a user namespace may not take away again. */
static unsigned long locked_flags(const char *path)
{
	struct statvfs fs;
	unsigned long flags = 0;

	if (statvfs(path, &fs) < 0)
		return 0;
	flags |= fs.f_flag & ST_RDONLY ? MS_RDONLY : 0;
	flags |= fs.f_flag & ST_NOSUID ? MS_NOSUID : 0;
	flags |= fs.f_flag & ST_NODEV ? MS_NODEV : 0;
	flags |= fs.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
	return flags;
}

static int bind_to(const char *from, const char *to, unsigned long flags, struct hm_err *e)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return hm_err_errno(e, errno, "bind on %s", to);
	if (flags != 0 && mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | flags | locked_flags(to), NULL) < 0)
		return hm_err_errno(e, errno, "make the bind on %s read-only", to);
	return 0;
}

static int make_stage(const struct jail *j, struct hm_err *e)
{
	static const char *const names[] = {
		"upper", "work", ROOT, ROOT "/proc", ROOT "/sys", ROOT "/dev", ROOT "/run"
	};

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return hm_err_errno(e, errno, "make mounts private");
	if (mount("stage", j->stage, "tmpfs", 0, "mode=0755") < 0 || chdir(j->stage) < 0)
		return hm_err_errno(e, errno, "tmpfs on %s", j->stage);
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		if (mkdir(names[i], 0755) < 0)
			return hm_err_errno(e, errno, "mkdir %s in %s", names[i], j->stage);
	}
	return 0;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void copy_link(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof target - 1);

	if (n < 0)
		return;
	target[n] = '\0';
	if (symlink(target, to) < 0)
		return; /* what is not there is missed by whoever needs it */
}

/* A tmpfs with the folder's entries: links copied, all else bound. Entries that cannot be bound are left out. */
static int mimic(const char *folder, struct hm_err *e)
{
	char from[PATH_MAX], to[PATH_MAX];
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct hm_err ignored;
	struct stat st;

	snprintf(to, sizeof to, ROOT "%s", folder);
	if (mount("mimic", to, "tmpfs", 0, "mode=0755") < 0) {
		if (dir != NULL)
			closedir(dir);
		return hm_err_errno(e, errno, "tmpfs on %s", folder);
	}
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (is_dots(entry->d_name) ||
		    snprintf(from, sizeof from, "%s/%s", folder, entry->d_name) >= (int)sizeof from ||
		    snprintf(to, sizeof to, ROOT "%s/%s", folder, entry->d_name) >= (int)sizeof to ||
		    lstat(from, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			copy_link(from, to);
		else if (make_target(to, S_ISDIR(st.st_mode), &ignored) == 0)
			(void)!bind_to(from, to, 0, &ignored);
	}
	if (dir != NULL)
		closedir(dir);
	return 0;
}

/* Over the folder, at the same path of the new root. The merged folder shows the upper one's mode and owner; a user may
 * not give away, and need not. */
static bool overlay(const char *folder, const struct stat *st)
{
	static const char *const more[] = { "", ",userxattr" }; /* the second is what older kernels let users do */
	static unsigned number;
	char upper[32], work[32], target[PATH_MAX], options[PATH_MAX + 128];

	snprintf(upper, sizeof upper, "upper/%u", number);
	snprintf(work, sizeof work, "work/%u", number++);
	if (snprintf(target, sizeof target, ROOT "%s", folder) >= (int)sizeof target || strpbrk(folder, ",:\\") != NULL)
		return false;
	if (mkdir(upper, 0755) < 0 || mkdir(work, 0755) < 0 || chmod(upper, st->st_mode & 07777) < 0)
		return false;
	(void)!chown(upper, st->st_uid, st->st_gid);
	for (size_t i = 0; i < HM_COUNT(more); i++) {
		snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s%s", folder, upper, work, more[i]);
		if (mount("overlay", target, "overlay", 0, options) == 0)
			return true;
	}
	return false;
}

static bool is_own(const char *name)
{
	static const char *const own[] = { "proc", "sys", "dev", "run" };

	for (size_t i = 0; i < HM_COUNT(own); i++) {
		if (strcmp(name, own[i]) == 0)
			return true;
	}
	return is_dots(name);
}

static int add_entry(const char *name, struct hm_err *e)
{
	char from[300], to[300];
	struct stat st;

	snprintf(from, sizeof from, "/%s", name);
	snprintf(to, sizeof to, ROOT "/%s", name);
	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		copy_link(from, to);
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (mkdir(to, 0755) < 0)
		return hm_err_errno(e, errno, "mkdir %s", to);
	return overlay(from, &st) ? 0 : mimic(from, e);
}

static int add_root_entries(struct hm_err *e)
{
	DIR *dir = opendir("/");
	struct dirent *entry;
	int r = 0;

	if (dir == NULL)
		return hm_err_errno(e, errno, "/");
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		if (!is_own(entry->d_name))
			r = add_entry(entry->d_name, e);
	}
	closedir(dir);
	return r;
}

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The mount point of a line of mountinfo (its fifth word), escapes undone; false where there is none. */
static bool mount_point(const char *line, char *out, size_t cap)
{
	const char *p = line;
	size_t n = 0;

	for (int word = 0; word < 4; word++) {
		p = strchr(p, ' ');
		if (p == NULL)
			return false;
		p++;
	}
	while (*p != ' ' && *p != '\0' && *p != '\n' && n + 1 < cap) {
		unsigned code;

		if (*p == '\\' && sscanf(p + 1, "%3o", &code) == 1) {
			out[n++] = (char)code;
			p += 4;
		} else {
			out[n++] = *p++;
		}
	}
	out[n] = '\0';
	return n > 1; /* not "/" */
}

/* Folders of the root are overlays already, whatever file system they are. */
static bool is_done(const struct jail *j, const char *path)
{
	char top[NAME_MAX + 1];
	const char *slash = strchr(path + 1, '/');

	if (slash == NULL)
		return true;
	snprintf(top, sizeof top, "%.*s", (int)(slash - path - 1), path + 1);
	return is_own(top) || is_below(path, j->stage);
}

/* The machine's other file systems. Each with what is below it; one that cannot be bound is simply not there. */
static int bind_file_systems(const struct jail *j, struct hm_err *e)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[PATH_MAX + 256], point[PATH_MAX], last[PATH_MAX] = "", target[PATH_MAX + 16];
	struct hm_err ignored;

	if (f == NULL)
		return hm_err_errno(e, errno, "/proc/self/mountinfo");
	while (fgets(line, sizeof line, f) != NULL) {
		if (!mount_point(line, point, sizeof point) || is_done(j, point) ||
		    (last[0] != '\0' && is_below(point, last)))
			continue;
		snprintf(target, sizeof target, ROOT "%s", point);
		if (bind_to(point, target, 0, &ignored) == 0)
			memcpy(last, point, sizeof last);
	}
	fclose(f);
	return 0;
}

/* The deepest folder of the machine that is there on the way to a container's path, links followed. */
static bool existing_folder(const char *path, char *out)
{
	char copy[PATH_MAX];
	char *slash;

	if (strlen(path) >= sizeof copy)
		return false;
	memcpy(copy, path, strlen(path) + 1);
	while ((slash = strrchr(copy, '/')) != NULL && slash != copy) {
		*slash = '\0';
		if (realpath(copy, out) != NULL)
			return true;
	}
	return false;
}

static int compare_length(const void *a, const void *b)
{
	size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);

	return (x > y) - (x < y);
}

/* In a user namespace nobody may make files in folders of other users, and root's are such: where a mount's target is
 * to be made gets an overlay of its own, whose uppermost folder is ours. Outer ones first, since they hide inner ones.
 */
static int open_targets(const struct jail *j, struct hm_err *e)
{
	char **folders = calloc(j->mount_count + 1, sizeof *folders), path[PATH_MAX];
	size_t count = 0;
	struct stat st;

	if (folders == NULL)
		return hm_err_set(e, HM_ENOMEM, "jail");
	for (size_t i = 0; i < j->mount_count; i++) {
		if (!existing_folder(j->mounts[i].container, path) || is_done(j, path))
			continue;
		folders[count] = strdup(path);
		count += folders[count] != NULL;
	}
	qsort(folders, count, sizeof *folders, compare_length);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && strcmp(folders[i - 1], folders[i]) == 0)
			continue;
		if (stat(folders[i], &st) == 0 && st.st_uid != geteuid() && !overlay(folders[i], &st))
			return hm_err_errno(e, errno, "overlay over %s", folders[i]);
	}
	return 0; /* the child of a clone: what it holds goes with exec */
}

static int make_dev(struct hm_err *e)
{
	static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
	static const char *const links[][2] = { { "/proc/self/fd", "fd" },
						{ "/proc/self/fd/0", "stdin" },
						{ "/proc/self/fd/1", "stdout" },
						{ "/proc/self/fd/2", "stderr" } };
	char from[64], to[64];

	if (mount("dev", ROOT "/dev", "tmpfs", MS_NOSUID, "mode=0755") < 0)
		return hm_err_errno(e, errno, "/dev");
	for (size_t i = 0; i < HM_COUNT(nodes); i++) {
		snprintf(from, sizeof from, "/dev/%s", nodes[i]);
		snprintf(to, sizeof to, ROOT "/dev/%s", nodes[i]);
		if (make_target(to, false, e) < 0 || bind_to(from, to, 0, e) < 0)
			return -e->code;
	}
	for (size_t i = 0; i < HM_COUNT(links); i++) {
		snprintf(to, sizeof to, ROOT "/dev/%s", links[i][1]);
		if (symlink(links[i][0], to) < 0)
			return hm_err_errno(e, errno, "/dev/%s", links[i][1]);
	}
	if (mkdir(ROOT "/dev/shm", 01777) < 0 ||
	    mount("shm", ROOT "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return hm_err_errno(e, errno, "/dev/shm");
	return 0;
}

static int make_kernel_file_systems(struct hm_err *e)
{
	/* A user namespace below a masked /proc may not mount one of its own: the outer one must do, with outer pids.
	 */
	if (mount("proc", ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 &&
	    bind_to("/proc", ROOT "/proc", 0, e) < 0)
		return -e->code;
	if (bind_to("/sys", ROOT "/sys", 0, e) < 0)
		return -e->code;
	if (mount("run", ROOT "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		return hm_err_errno(e, errno, "/run");
	return make_dev(e);
}

static int open_sources(const struct jail *j, int *fds, struct hm_err *e)
{
	for (size_t i = 0; i < j->mount_count; i++) {
		fds[i] = open(j->mounts[i].host, O_PATH | O_CLOEXEC);
		if (fds[i] < 0)
			return hm_err_errno(e, errno, "mount source %s", j->mounts[i].host);
	}
	return 0;
}

static int bind_sources(const struct jail *j, const int *fds, struct hm_err *e)
{
	for (size_t i = 0; i < j->mount_count; i++) {
		const struct jail_mount *m = &j->mounts[i];
		char from[32];
		struct stat st;

		if (m->container[0] != '/')
			return hm_err_set(e, HM_EINVAL, "mount %s: the container's path is not absolute", m->container);
		if (fstat(fds[i], &st) < 0)
			return hm_err_errno(e, errno, "mount source %s", m->host);
		snprintf(from, sizeof from, "/proc/self/fd/%d", fds[i]);
		if (make_target(m->container, S_ISDIR(st.st_mode), e) < 0 ||
		    bind_to(from, m->container, m->flags, e) < 0)
			return hm_err_wrap(e, "mount %s", m->host);
		close(fds[i]);
	}
	return 0;
}

int jail_root_enter(const struct jail *j, struct hm_err *e)
{
	int *fds = calloc(j->mount_count + 1, sizeof *fds);

	if (fds == NULL)
		return hm_err_set(e, HM_ENOMEM, "jail");
	if (make_stage(j, e) < 0 || add_root_entries(e) < 0 || bind_file_systems(j, e) < 0 || open_targets(j, e) < 0 ||
	    make_kernel_file_systems(e) < 0 || open_sources(j, fds, e) < 0)
		return -e->code;
	if (chroot(ROOT) < 0 || chdir("/") < 0)
		return hm_err_errno(e, errno, "chroot");
	return bind_sources(j, fds, e);
}
