#include "sim/simkubelet/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "sim/simkubelet/jail_root.h"

enum { START_TIMEOUT_MS = 20000, CANNOT_RUN = 127 };

static int write_file(const char *path, const char *text, struct hm_err *e)
{
	hm_auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return hm_err_errno(e, errno, "write %s", path);
	return 0;
}

/* This user becomes root inside, which is all that it may map. */
static int map_user(uid_t user, gid_t group, struct hm_err *e)
{
	char map[64];

	if (write_file("/proc/self/setgroups", "deny", e) < 0)
		return -e->code;
	snprintf(map, sizeof map, "0 %u 1", user);
	if (write_file("/proc/self/uid_map", map, e) < 0)
		return -e->code;
	snprintf(map, sizeof map, "0 %u 1", group);
	return write_file("/proc/self/gid_map", map, e);
}

static int become_user(const struct jail *j, struct hm_err *e)
{
	if (j->user < 0 && j->group < 0)
		return 0;
	if (j->user_namespace)
		return hm_err_set(e, HM_EUNSUPPORTED, "runAsUser needs root on the node");
	if (setgroups(0, NULL) < 0)
		return hm_err_errno(e, errno, "setgroups");
	if (j->group >= 0 && setresgid((gid_t)j->group, (gid_t)j->group, (gid_t)j->group) < 0)
		return hm_err_errno(e, errno, "setresgid");
	if (j->user >= 0 && setresuid((uid_t)j->user, (uid_t)j->user, (uid_t)j->user) < 0)
		return hm_err_errno(e, errno, "setresuid");
	return 0;
}

/* SIGKILL when the parent dies; `alive` reports POLLHUP if it did so before. */
static int die_with_parent(int alive, struct hm_err *e)
{
	struct pollfd p = { .fd = alive };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return hm_err_errno(e, errno, "PR_SET_PDEATHSIG");
	if (poll(&p, 1, 0) != 0)
		return hm_err_set(e, HM_EAGAIN, "the parent died");
	return 0;
}

static int prepare(const struct jail *j, int alive, uid_t user, gid_t group, struct hm_err *e)
{
	sigset_t none;
	int null;

	if (die_with_parent(alive, e) < 0)
		return -e->code;
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (j->user_namespace && map_user(user, group, e) < 0)
		return -e->code;
	if (jail_root_enter(j, e) < 0)
		return -e->code;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(j->log_fd, 1) < 0 || dup2(j->log_fd, 2) < 0)
		return hm_err_errno(e, errno, "standard files");
	if (become_user(j, e) < 0)
		return -e->code;
	return die_with_parent(alive, e); /* a change of user forgot it */
}

static void HM_UNUSED run_child(const struct jail *j, int alive, int report, uid_t user, gid_t group)
{
	struct hm_err e = { 0 };

	if (prepare(j, alive, user, group, &e) == 0) {
		environ = (char **)(uintptr_t)j->env;
		execvp(j->argv[0], j->argv);
		hm_err_errno(&e, errno, "exec %s", j->argv[0]);
	}
	if (write(report, &e, sizeof e) < 0)
		_exit(CANNOT_RUN);
	_exit(CANNOT_RUN);
}

/* The child's error, or nothing when exec closed the pipe. */
static int read_report(int fd, struct hm_err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hm_err told;
	ssize_t n;
	int ready;

	do /* other containers' SIGCHLD */
		ready = poll(&p, 1, START_TIMEOUT_MS);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return hm_err_set(e, HM_ETIMEDOUT, "the container did not start within %d s", START_TIMEOUT_MS / 1000);
	do
		n = read(fd, &told, sizeof told);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof told)
		return hm_err_set(e, HM_EINTERNAL, "the container's start was cut short");
	told.msg[sizeof told.msg - 1] = '\0';
	*e = told;
	return -e->code;
}

static pid_t wait_for(pid_t pid, int *status)
{
	pid_t got;

	do
		got = waitpid(pid, status, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

/* As fork, into new namespaces. */
static pid_t clone_into(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);
}

int jail_start(const struct jail *j, pid_t *pid, struct hm_err *e)
{
	unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | (j->user_namespace ? CLONE_NEWUSER : 0);
	uid_t user = geteuid();
	gid_t group = getegid();
	int alive[2], report[2];
	hm_auto_fd report_in = -1;
	int r;

	if (pipe2(alive, O_CLOEXEC) < 0)
		return hm_err_errno(e, errno, "pipe");
	if (pipe2(report, O_CLOEXEC) < 0) {
		close(alive[0]), close(alive[1]);
		return hm_err_errno(e, errno, "pipe");
	}
	*pid = clone_into(flags);
	if (*pid == 0) {
		close(alive[1]);
		run_child(j, alive[0], report[1], user, group);
	}
	r = *pid < 0 ? hm_err_errno(e, errno, "new namespaces") : 0;
	close(alive[0]);
	close(report[1]);
	report_in = report[0];
	if (r == 0)
		r = read_report(report_in, e);
	close(alive[1]); /* from here on PR_SET_PDEATHSIG watches */
	if (r < 0 && *pid > 0) {
		kill(*pid, SIGKILL);
		wait_for(*pid, NULL);
	}
	return r;
}

/* ---- exec into a running one ---- */

static char **read_environment(pid_t pid, char *text, size_t cap)
{
	char path[64], **env = calloc(cap / 2, sizeof *env);
	size_t n = 0, count = 0;
	hm_auto_fd fd = -1;
	ssize_t got;

	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n + 1 < cap && (got = read(fd, text + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	for (size_t i = 0; env != NULL && i < n; i += strlen(text + i) + 1)
		env[count++] = text + i;
	return env;
}

static int enter_namespaces(pid_t pid, struct hm_err *e)
{
	static const char *const names[] = { "user", "ipc", "pid", "mnt" };
	char path[64];
	hm_auto_fd root = -1;
	int fds[HM_COUNT(names)];

	snprintf(path, sizeof path, "/proc/%d/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return hm_err_errno(e, errno, "%s", path);
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, names[i]);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			return hm_err_errno(e, errno, "%s", path);
	}
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		/* One's own user namespace may not be entered again; a container of root's has no other. */
		if (setns(fds[i], 0) < 0 && !(i == 0 && errno == EINVAL))
			return hm_err_errno(e, errno, "enter the %s namespace", names[i]);
	}
	if (fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return hm_err_errno(e, errno, "enter the container's root");
	return 0;
}

static int exit_status(pid_t pid)
{
	int status;

	if (pid < 0 || wait_for(pid, &status) < 0)
		return CANNOT_RUN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In a child: enters, and runs argv in a child of its own, since a pid namespace is entered by children only. */
static int run_inside(pid_t pid, char *const *argv, char **env)
{
	struct hm_err e;
	pid_t child;

	if (enter_namespaces(pid, &e) < 0) {
		fprintf(stderr, "container with pid %d: %s\n", pid, e.msg);
		return CANNOT_RUN;
	}
	child = fork();
	if (child == 0) {
		environ = env;
		execvp(argv[0], argv);
		fprintf(stderr, "exec %s: %s\n", argv[0], strerror(errno));
		_exit(CANNOT_RUN);
	}
	return exit_status(child);
}

int jail_enter(pid_t pid, char *const *argv, struct hm_err *e)
{
	static char text[1024 * 1024];
	char **env = read_environment(pid, text, sizeof text);
	pid_t child;
	int code;

	if (env == NULL)
		return hm_err_set(e, HM_ENOMEM, "environment");
	child = fork(); /* this process stays outside: its libraries may not bear the change */
	if (child == 0)
		_exit(run_inside(pid, argv, env));
	code = exit_status(child);
	free(env);
	return code;
}
