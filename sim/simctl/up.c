#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "io/file.h"
#include "sim/simctl/simctl.h"

#define LOG_FILE "simd.log"
#define MADE_FILE "made-by-hami-simctl" /* in a folder that up itself made */

enum { END_WAIT_MS = 5000 };

/* "<folder of this program>/<below>" */
static int beside_us(const char *below, char out[PATH_MAX], struct hm_err *e)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return hm_err_errno(e, errno, "/proc/self/exe");
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (slash == NULL || hm_fmt(slash + 1, (size_t)(out + PATH_MAX - slash - 1), "%s", below) >=
				     (size_t)(out + PATH_MAX - slash - 1))
		return hm_err_set(e, HM_EINVAL, "this program's path is too long");
	return 0;
}

/* Where the driver libraries are: installed, or built. */
static int find_libraries(char out[PATH_MAX], struct hm_err *e)
{
	int r = beside_us("../lib/hami-vgpu/sim", out, e);

	return r < 0 || access(out, F_OK) == 0 ? r : beside_us("../sim", out, e);
}

static int make_dir(const char *dir, struct hm_err *e)
{
	char path[PATH_MAX];
	struct stat st;
	bool made = stat(dir, &st) < 0;
	int r = file_mkdirs(dir, 0755, e);

	if (r < 0)
		return r;
	/* Containers of any uid come here through a mount; mktemp -d makes folders for its owner only. */
	if (chmod(dir, 0755) < 0)
		return hm_err_errno(e, errno, "%s", dir);
	if (made && hm_fmt(path, sizeof path, "%s/" MADE_FILE, dir) < sizeof path)
		return file_replace(path, "", 0, 0644, e);
	return 0;
}

/* ---- The daemon */

static _Noreturn void become_daemon(const char *simd, const struct simctl *c, const char *node, int ready_fd)
{
	char log[PATH_MAX];
	int fd, null = open("/dev/null", O_RDONLY);

	setsid();
	hm_fmt(log, sizeof log, "%s/" LOG_FILE, c->dir);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(ready_fd, 1) < 0 || dup2(fd, 2) < 0 || chdir("/") < 0)
		_exit(127);
	execl(simd, "hami-simd", "--dir", c->dir, "--node", node, "--clock", c->clock, (char *)NULL);
	dprintf(2, "cannot start %s: %s\n", simd, strerror(errno));
	_exit(127);
}

/* What the daemon wrote before it gave up: "hami-simd: <why>". */
static int report_failure(const struct simctl *c, int status, struct hm_err *e)
{
	static const char name[] = "hami-simd: ";
	hm_auto_str log = { 0 };
	char path[PATH_MAX];
	const char *text, *end;
	int code = WIFEXITED(status) && WEXITSTATUS(status) == 2 ? HM_EINVAL : HM_EIO;

	hm_fmt(path, sizeof path, "%s/" LOG_FILE, c->dir);
	if (file_read(path, 1 << 16, &log, NULL) < 0 || log.n == 0)
		return hm_err_set(e, code, "hami-simd ended at once");
	text = strstr(str_text(&log), name);
	text = text != NULL ? text + strlen(name) : str_text(&log);
	end = strchrnul(text, '\n');
	return hm_err_set(e, code, "%.*s", (int)(end - text), text);
}

static int start_daemon(const struct simctl *c, const char *node, struct hm_err *e)
{
	char simd[PATH_MAX], word[16] = "";
	int fds[2], status = 0, r = beside_us("hami-simd", simd, e);
	ssize_t n;
	pid_t pid;

	if (r < 0)
		return r;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return hm_err_errno(e, errno, "pipe");
	pid = fork();
	if (pid == 0)
		become_daemon(simd, c, node, fds[1]);
	close(fds[1]);
	do {
		n = pid < 0 ? 0 : read(fds[0], word, sizeof word - 1);
	} while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (n > 0 && strncmp(word, "ready", 5) == 0)
		return 0;
	if (pid < 0)
		return hm_err_set(e, HM_EIO, "cannot fork");
	waitpid(pid, &status, 0);
	return report_failure(c, status, e);
}

/* ---- /dev */

int simctl_make_node(const char *dir, const char *name, struct hm_err *e)
{
	char path[PATH_MAX];
	int fd;

	if (hm_fmt(path, sizeof path, "%s/dev/%s", dir, name) >= sizeof path)
		return hm_err_set(e, HM_EINVAL, "%s: too long", dir);
	unlink(path);
	/* A null device stands for the card; where nodes may not be made, an empty file has to do. */
	if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) < 0) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0)
			return hm_err_errno(e, errno, "%s", path);
		close(fd);
	}
	return chmod(path, 0666) == 0 ? 0 : hm_err_errno(e, errno, "%s", path);
}

int simctl_make_nodes(const char *dir, const struct sim_node *node, struct hm_err *e)
{
	static const char *const common[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset" };
	char path[PATH_MAX], name[32];
	int r;

	hm_fmt(path, sizeof path, "%s/dev", dir);
	r = file_mkdirs(path, 0755, e);
	for (size_t i = 0; r == 0 && i < HM_COUNT(common); i++)
		r = simctl_make_node(dir, common[i], e);
	for (unsigned i = 0; r == 0 && i < node->card_count; i++) {
		hm_fmt(name, sizeof name, "nvidia%u", node->cards[i].info.minor);
		r = simctl_make_node(dir, name, e);
	}
	return r;
}

/* ---- up */

int simctl_up(struct simctl *c, struct hm_err *e)
{
	char node_path[PATH_MAX], lib_dir[PATH_MAX], dir[PATH_MAX];
	const struct sim_node *node = NULL;
	struct hm_err ignored;
	int r;

	if (realpath(c->words[0], node_path) == NULL)
		return hm_err_set(e, HM_EINVAL, "%s: %s", c->words[0], hm_errno_text(errno));
	if (c->lib_dir == NULL && (r = find_libraries(lib_dir, e)) < 0)
		return r;
	if (c->lib_dir != NULL && realpath(c->lib_dir, lib_dir) == NULL)
		return hm_err_set(e, HM_EINVAL, "--lib-dir %s: %s", c->lib_dir, hm_errno_text(errno));
	if ((r = make_dir(c->dir, e)) < 0)
		return r;
	if (realpath(c->dir, dir) == NULL || setenv(SIM_ENV_DIR, dir, 1) < 0)
		return hm_err_errno(e, errno, "%s", c->dir);
	c->dir = dir;
	if ((r = start_daemon(c, node_path, e)) < 0)
		return r;
	r = simctl_attach(c, &node, e);
	if (r == 0)
		r = simctl_make_nodes(dir, node, e);
	if (r == 0)
		r = simctl_make_caps(dir, node, e);
	if (r == 0)
		r = simctl_write_cdi(dir, lib_dir, node, e);
	if (r == 0)
		printf("node %s is up in %s: %u cards\n", node->name, dir, node->card_count);
	else if (simctl_down(c, &ignored) < 0)
		fprintf(stderr, "hami-simctl: cannot end it again: %s\n", ignored.msg);
	return r;
}

/* ---- down */

static void await_holders(const uint32_t *pids, size_t count)
{
	struct timespec tick = { 0, 10000000 };

	for (unsigned tries = 0; tries < 200; tries++) {
		size_t left = 0;

		for (size_t i = 0; i < count; i++)
			left += kill((pid_t)pids[i], 0) == 0;
		if (left == 0)
			return;
		nanosleep(&tick, NULL);
	}
}

static int stop_daemon(const struct simctl *c, struct hm_err *e)
{
	const struct sim_node *node = sim_attach() == SIM_OK ? sim_node() : NULL;
	uint32_t pids[SIM_MAX_PROCESSES];
	struct sim_reply reply;
	size_t count = 0;
	int r;

	for (unsigned i = 0; node != NULL && i < SIM_MAX_PROCESSES; i++)
		if (atomic_load(&node->processes[i].pid) != 0 && atomic_load(&node->processes[i].holder) != 0)
			pids[count++] = atomic_load(&node->processes[i].pid);
	r = simctl_ask(c, (struct sim_request) { .op = SIM_OP_STOP }, &reply, e);
	if (r < 0)
		return r;
	if (!sim_wait_end(END_WAIT_MS))
		return hm_err_set(e, HM_ETIMEDOUT, "hami-simd does not end");
	await_holders(pids, count);
	return 0;
}

static int remove_files(const char *dir, struct hm_err *e)
{
	static const char *const trees[] = { "dev", "cdi", "proc" };
	static const char *const files[] = { SIM_SOCKET, SIM_STATE_FILE, LOG_FILE };
	char path[PATH_MAX];

	for (size_t i = 0; i < HM_COUNT(trees); i++) {
		int r;

		hm_fmt(path, sizeof path, "%s/%s", dir, trees[i]);
		if ((r = file_remove_tree(path, e)) < 0)
			return r;
	}
	for (size_t i = 0; i < HM_COUNT(files); i++) {
		hm_fmt(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	hm_fmt(path, sizeof path, "%s/" MADE_FILE, dir);
	if (unlink(path) == 0 && rmdir(dir) < 0 && errno != ENOTEMPTY)
		return hm_err_errno(e, errno, "%s", dir);
	return 0;
}

int simctl_down(struct simctl *c, struct hm_err *e)
{
	char path[PATH_MAX];
	struct stat st;
	int r = stop_daemon(c, e);

	/* A daemon that was killed leaves its files: they go too. */
	hm_fmt(path, sizeof path, "%s/" SIM_STATE_FILE, c->dir);
	if (r == -HM_ENOTFOUND && stat(path, &st) == 0)
		r = 0;
	return r == 0 ? remove_files(c->dir, e) : r;
}
