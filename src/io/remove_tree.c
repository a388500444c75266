/* Removing a folder that a container could write, perhaps still can. Its owner may nest folders deeper than any path or
 * recursion goes, and may put a link where a folder was a moment ago. So nothing is reached by a path: only by one name
 * in an open folder, never through a link. A folder found inside another is first moved up to the top: at any depth two
 * descriptors are enough. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "io/file.h"

struct removal {
	int top;
	dev_t device;
	unsigned long moved; /* folders so far: part of their names at the top */
	unsigned left;       /* names that may still go */
	bool progress;       /* in this pass */
	int failure;         /* errno of the last thing that could not be removed in this pass */
};

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static void note(struct removal *m, bool done)
{
	if (done) {
		m->progress = true;
		m->left--;
	} else if (errno != ENOENT) {
		m->failure = errno;
	}
}

static void move_up(struct removal *m, int from, const char *name)
{
	char to[64];
	int r;

	do {
		hm_fmt(to, sizeof to, ".removed-%d-%lu", (int)getpid(), m->moved++);
		r = renameat(from, name, m->top, to);
	} while (r < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
	note(m, r == 0);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Each name in the folder `fd` (taken over): what is no folder goes; folders are handed to `folder`. */
static void each(struct removal *m, int fd, void (*folder)(struct removal *m, int at, const char *name))
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;

	if (dir == NULL) {
		note(m, false);
		close(fd);
		return;
	}
	while (m->left > 0 && (d = readdir(dir)) != NULL) {
		if (is_dots(d->d_name))
			continue;
		if (unlinkat(fd, d->d_name, 0) == 0)
			note(m, true);
		else if (errno == EISDIR)
			folder(m, fd, d->d_name);
		else
			note(m, false);
	}
	closedir(dir);
}

/* A folder at the top: it goes if it is empty behind this, else in the next pass. */
static void empty(struct removal *m, int top, const char *name)
{
	int fd = open_folder(top, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		note(m, false);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (st.st_dev == m->device) {
		each(m, fd, move_up);
	} else { /* mounted here: what is in it is not ours */
		close(fd);
	}
	if (m->left > 0)
		note(m, unlinkat(top, name, AT_REMOVEDIR) == 0);
}

static int empty_top(struct removal *m)
{
	while (m->left > 0) {
		int fd = open_folder(m->top, ".");

		m->progress = false;
		m->failure = 0;
		if (fd < 0)
			return errno;
		each(m, fd, empty);
		if (!m->progress)
			return m->failure;
	}
	return EAGAIN;
}

int file_remove_some(const char *path, unsigned most, struct hm_err *e)
{
	hm_auto_fd top = open_folder(AT_FDCWD, path);
	struct removal m = { .top = top, .left = most };
	struct stat st;
	int failure;

	if (top < 0) {
		if (errno == ENOENT || ((errno == ENOTDIR || errno == ELOOP) && unlink(path) == 0))
			return 0;
		return hm_err_errno(e, errno, "remove %s", path);
	}
	if (fstat(top, &st) < 0)
		return hm_err_errno(e, errno, "remove %s", path);
	m.device = st.st_dev;
	failure = empty_top(&m);
	if (failure == 0 && rmdir(path) < 0 && errno != ENOENT)
		failure = errno;
	if (failure == EAGAIN)
		return hm_err_set(e, HM_EAGAIN, "remove %s: more than %u names are in it", path, most);
	return failure == 0 ? 0 : hm_err_errno(e, failure, "remove %s", path);
}

int file_remove_tree(const char *path, struct hm_err *e)
{
	return file_remove_some(path, UINT_MAX, e);
}
