#include "io/dir_watch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

struct dir_watch {
	int fd;
	struct loop_fd *ready;
	void (*cb)(void *arg, enum dir_event event, const char *name);
	void *arg;
	bool busy, dead; /* events are being handed out; the watch was freed meanwhile */
};

static void hand_out(struct dir_watch *w, const struct inotify_event *ev)
{
	if (ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT))
		w->cb(w->arg, DIR_GONE, "");
	else if (ev->len > 0)
		w->cb(w->arg,
		      ev->mask & IN_CLOSE_WRITE              ? DIR_WRITTEN
		      : ev->mask & (IN_CREATE | IN_MOVED_TO) ? DIR_CREATED
							     : DIR_DELETED,
		      ev->name);
}

static void on_ready(void *arg, int events)
{
	struct dir_watch *w = arg;
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(w->fd, buf, sizeof buf);

	(void)events;
	w->busy = true;
	for (ssize_t at = 0; at < n && !w->dead;) {
		const struct inotify_event *ev = (const void *)(buf + at);

		at += (ssize_t)(sizeof *ev + ev->len);
		hand_out(w, ev);
	}
	w->busy = false;
	if (w->dead)
		dir_watch_free(w);
}

static int watch(struct loop *l, const char *path, uint32_t more, void (*cb)(void *, enum dir_event, const char *),
		 void *arg, struct dir_watch **out, struct hm_err *e)
{
	hm_auto(dir_watch) *w = calloc(1, sizeof *w);
	int r;

	if (w == NULL)
		return hm_err_set(e, HM_ENOMEM, "watch %s", path);
	w->cb = cb;
	w->arg = arg;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0 || inotify_add_watch(w->fd, path,
					   IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF |
						   IN_MOVE_SELF | IN_ONLYDIR | more) < 0)
		return hm_err_errno(e, errno, "watch %s", path);
	r = loop_fd_new(l, w->fd, LOOP_READ, on_ready, w, &w->ready, e);
	if (r < 0)
		return hm_err_wrap(e, "watch %s", path);
	*out = HM_STEAL(w);
	return 0;
}

int dir_watch_new(struct loop *l, const char *path, void (*cb)(void *, enum dir_event, const char *), void *arg,
		  struct dir_watch **out, struct hm_err *e)
{
	return watch(l, path, 0, cb, arg, out, e);
}

int dir_watch_new_writes(struct loop *l, const char *path, void (*cb)(void *, enum dir_event, const char *), void *arg,
			 struct dir_watch **out, struct hm_err *e)
{
	return watch(l, path, IN_CLOSE_WRITE, cb, arg, out, e);
}

void dir_watch_free(struct dir_watch *w)
{
	if (w == NULL)
		return;
	if (w->busy) {
		w->dead = true;
		return;
	}
	loop_fd_free(w->ready);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}
