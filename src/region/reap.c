/* Reaping from outside. The file is mapped only in a child process: a container that truncates it at the wrong moment
 * ends the child, not the agent. The child calls nothing that may allocate. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region/map.h"
#include "region/region.h"
#include "region/shared.h"

enum {
	WAIT_MS = 100,  /* for the region's lock */
	CHILD_MS = 300, /* for all of it: a page of a hostile file may never come */
};

/* The same on every architecture; not in older headers. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_send_signal 424
#define SYS_pidfd_open 434
#endif

struct condemned {
	uint64_t who[REGION_SLOTS], meta[REGION_SLOTS];
	size_t count;
};

static int read_heads(const char *path, struct region_head heads[REGION_SLOTS], struct hm_err *e)
{
	const size_t bytes = REGION_SLOTS * sizeof heads[0];
	struct region_header h;
	int fd = region_open_file(path, false, &h, e);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = pread(fd, heads, bytes, offsetof(struct region_layout, heads));
	close(fd);
	if (n != (ssize_t)bytes)
		return hm_err_set(e, HM_EPROTO, "usage region %s: cut while being read", path);
	return 0;
}

static int condemn(const char *path, bool (*alive)(const struct region_process *p, void *arg), void *arg,
		   struct condemned *out, struct hm_err *e)
{
	struct region_head heads[REGION_SLOTS];
	int r = read_heads(path, heads, e);

	out->count = 0;
	for (unsigned i = 0; i < REGION_SLOTS && r == 0; i++) {
		struct region_slot_id id = slot_id(&heads[i]);
		struct region_process p = { .pid = id.pid,
					    .start_time = id.start_time,
					    .pid_namespace = id.pid_namespace };

		if (id.who == 0 || alive(&p, arg))
			continue;
		out->who[out->count] = id.who;
		out->meta[out->count++] = id.meta;
	}
	return r;
}

static bool is_condemned(const struct region_slot_id *id, void *arg)
{
	const struct condemned *c = arg;

	for (size_t i = 0; i < c->count; i++) {
		if (c->who[i] == id->who && c->meta[i] == id->meta)
			return true;
	}
	return false;
}

static _Noreturn void reap_in_child(const char *path, struct condemned *c)
{
	struct region_map m;

	if (region_map_file(path, &m, NULL) < 0)
		_exit(1);
	_exit(region_map_reap(&m, WAIT_MS, is_condemned, c, NULL) < 0 ? 1 : 0);
}

/* By descriptor: where SIGCHLD is ignored, the pid may be another's by now. A kernel without them waits for ever. */
static void await_child(pid_t child)
{
	int fd = (int)syscall(SYS_pidfd_open, child, 0), r = -1;
	struct pollfd end = { .fd = fd, .events = POLLIN };

	for (int tries = 0; fd >= 0 && r < 0 && tries < 10; tries++)
		r = poll(&end, 1, CHILD_MS);
	if (fd >= 0 && r <= 0)
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	if (fd >= 0)
		close(fd);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* How many of the condemned are gone. Asked of the file, not of the child: the program may ignore SIGCHLD. */
static int count_gone(const char *path, const struct condemned *c, struct hm_err *e)
{
	struct region_head heads[REGION_SLOTS];
	int r = read_heads(path, heads, e);
	size_t left = 0;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < REGION_SLOTS; i++) {
		struct region_slot_id id = slot_id(&heads[i]);

		if (id.who != 0 && is_condemned(&id, (void *)(uintptr_t)c))
			left++;
	}
	return (int)(c->count - HM_MIN(left, c->count));
}

int region_reap(const char *path, bool (*alive)(const struct region_process *p, void *arg), void *arg, struct hm_err *e)
{
	struct condemned c;
	int r = condemn(path, alive, arg, &c, e);
	pid_t child;

	if (r < 0 || c.count == 0)
		return r;
	child = fork();
	if (child == 0)
		reap_in_child(path, &c);
	if (child < 0)
		return hm_err_errno(e, errno, "usage region %s: fork", path);
	await_child(child);
	return count_gone(path, &c, e);
}
