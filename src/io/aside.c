#include "io/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"

struct aside {
	struct aside_work work;
	struct loop_fd *ready;
	pid_t child; /* 0: none */
	int fd;      /* what the child writes comes out here */
	size_t n, got;
	uint8_t bytes[];
};

static void await_child(struct aside *a)
{
	while (a->child > 0 && waitpid(a->child, NULL, 0) < 0 && errno == EINTR)
		;
	a->child = 0;
}

void aside_free(struct aside *a)
{
	if (a == NULL)
		return;
	loop_fd_free(a->ready);
	if (a->fd >= 0)
		close(a->fd);
	if (a->child > 0)
		kill(a->child, SIGKILL);
	await_child(a);
	free(a);
}

static void on_bytes(void *arg, int events)
{
	struct aside *a = arg;
	struct aside_work w = a->work;
	ssize_t n;

	(void)events;
	do
		n = read(a->fd, a->bytes + a->got, a->n - a->got + 1);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	a->got += n > 0 ? (size_t)n : 0;
	if (n > 0 && a->got <= a->n)
		return;
	/* It ends now: its file is closed. */
	await_child(a);
	loop_fd_free(HM_STEAL(a->ready));
	w.done(w.arg, a->bytes, HM_MIN(a->got, a->n));
	aside_free(a);
}

/* ---- in the child */

static void forget_parent(int keep, pid_t parent)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD };
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* Our handlers would tell the parent's loop. */
	for (size_t i = 0; i < HM_COUNT(signals); i++)
		signal(signals[i], SIG_DFL);
	/* A connection that the parent closes must not stay open here. Linux 5.9; before, it stays until we end. */
	(void)syscall(SYS_close_range, 3U, (unsigned)keep - 1, 0U);
	(void)syscall(SYS_close_range, (unsigned)keep + 1, ~0U, 0U);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void be_child(struct aside *a, int fd, pid_t parent)
{
	forget_parent(fd, parent);
	a->work.work(a->work.arg, a->bytes, a->n);
	_exit(file_write_all(fd, a->bytes, a->n) < 0);
}

/* ---- */

static int start_child(struct aside *a, int fd, struct hm_err *e)
{
	pid_t parent = getpid(), child;
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	child = fork();
	failed = errno;
	if (child == 0)
		be_child(a, fd, parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (child < 0)
		return hm_err_errno(e, failed, "fork");
	a->child = child;
	return 0;
}

int aside_start(struct loop *l, const struct aside_work *w, size_t n, struct aside **out, struct hm_err *e)
{
	hm_auto(aside) *a = calloc(1, sizeof *a + n + 1); /* one more, to read the end */
	int fds[2], err;

	if (a == NULL)
		return hm_err_set(e, HM_ENOMEM, "aside");
	a->work = *w;
	a->n = n;
	a->fd = -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return hm_err_errno(e, errno, "pipe");
	a->fd = fds[0];
	err = fcntl(a->fd, F_SETFL, O_NONBLOCK) < 0 ? hm_err_errno(e, errno, "pipe") : 0;
	if (err == 0)
		err = loop_fd_new(l, a->fd, LOOP_READ, on_bytes, a, &a->ready, e);
	if (err == 0)
		err = start_child(a, fds[1], e);
	close(fds[1]);
	if (err < 0)
		return err;
	*out = HM_STEAL(a);
	return 0;
}
