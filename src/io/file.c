#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/cleanup.h"
#include "core/fmt.h"
#include "core/num.h"

enum { PATH_BYTES = 4096 };

int file_read(const char *path, size_t max_bytes, struct str *out, struct hm_err *e)
{
	hm_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[16384];
	ssize_t n;

	str_clear(out);
	if (fd < 0)
		return hm_err_errno(e, errno, "read %s", path);
	while ((n = read(fd, buf, sizeof buf)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hm_err_errno(e, errno, "read %s", path);
		if ((size_t)n > max_bytes - out->n)
			return hm_err_set(e, HM_ELIMIT, "read %s: more than %zu bytes", path, max_bytes);
		str_add_n(out, buf, (size_t)n);
	}
	if (str_failed(out))
		return hm_err_set(e, HM_ENOMEM, "read %s", path);
	return 0;
}

int file_write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

static int sync_folder(const char *path)
{
	char folder[PATH_BYTES];
	const char *slash = strrchr(path, '/');
	int r;

	if (slash == NULL)
		hm_fmt(folder, sizeof folder, ".");
	else
		hm_fmt(folder, sizeof folder, "%.*s", (int)(slash == path ? 1 : slash - path), path);
	hm_auto_fd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	r = fsync(fd);
	return r < 0 && errno == EINVAL ? 0 : r; /* a file system without fsync of folders */
}

static int write_file(const char *tmp, const void *bytes, size_t n, mode_t mode, const char *path, bool sync)
{
	hm_auto_fd fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd < 0 || fchmod(fd, mode) < 0 || file_write_all(fd, bytes, n) < 0 || (sync && fsync(fd) < 0))
		return -1;
	return rename(tmp, path);
}

static int replace(const char *path, const void *bytes, size_t n, mode_t mode, bool sync, struct hm_err *e)
{
	char tmp[PATH_BYTES];

	if (hm_fmt(tmp, sizeof tmp, "%s.tmp-%d", path, (int)getpid()) >= sizeof tmp)
		return hm_err_set(e, HM_EINVAL, "write: the path is too long: %.64s...", path);
	if (write_file(tmp, bytes, n, mode, path, sync) < 0) {
		int r = hm_err_errno(e, errno, "write %s", path);
		unlink(tmp);
		return r;
	}
	if (sync && sync_folder(path) < 0)
		return hm_err_errno(e, errno, "write %s: fsync of its folder", path);
	return 0;
}

int file_replace(const char *path, const void *bytes, size_t n, mode_t mode, struct hm_err *e)
{
	return replace(path, bytes, n, mode, true, e);
}

int file_swap(const char *path, const void *bytes, size_t n, mode_t mode, struct hm_err *e)
{
	return replace(path, bytes, n, mode, false, e);
}

static bool is_temporary(const char *name, const char *prefix)
{
	const char *mark = strstr(name, ".tmp-");
	uint64_t pid;

	return strncmp(name, prefix, strlen(prefix)) == 0 && mark != NULL && num_u64_str(mark + 5, INT32_MAX, &pid);
}

void file_remove_temporaries(const char *folder, const char *prefix)
{
	DIR *dir = opendir(folder);
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (is_temporary(d->d_name, prefix) && unlinkat(dirfd(dir), d->d_name, 0) < 0)
			log_warn("cannot remove a left-over file", KV("folder", folder), KV("name", d->d_name));
	if (dir != NULL)
		closedir(dir);
}

int file_mkdirs(const char *path, mode_t mode, struct hm_err *e)
{
	char part[PATH_BYTES];
	size_t n = strlen(path);

	if (n >= sizeof part)
		return hm_err_set(e, HM_EINVAL, "make folder: the path is too long: %.64s...", path);
	memcpy(part, path, n + 1);
	for (char *at = part + 1; at <= part + n; at++) {
		char keep = *at;
		struct stat st;

		if (keep != '/' && keep != '\0')
			continue;
		*at = '\0';
		if (mkdir(part, mode) < 0 && (errno != EEXIST || (stat(part, &st) == 0 && !S_ISDIR(st.st_mode))))
			return hm_err_errno(e, errno == EEXIST ? ENOTDIR : errno, "make folder %s", part);
		*at = keep;
	}
	return 0;
}
