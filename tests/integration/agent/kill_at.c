/* Preloaded into a program: it dies, as by kill -9, at the n-th change of a file from now on, just before it; of a
 * write half is done. The file that KILL_AT names holds n and says when "now" is; while it is not there nothing is
 * counted. What it died at is added to "<KILL_AT>.said", a line each. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static atomic_int changes, generation;

static int number(const char **at)
{
	int n = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		n = 10 * n + (**at - '0');
	*at += **at == ' ';
	return n;
}

/* The count begins anew with each generation. */
static int wanted(void)
{
	const char *path = getenv("KILL_AT"), *at;
	int fd = path == NULL ? -1 : NEXT(open)(path, O_RDONLY | O_CLOEXEC), n, now;
	char text[32] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	close(fd);
	at = text;
	n = number(&at);
	now = number(&at);
	if (atomic_exchange(&generation, now) != now)
		changes = 0;
	return n;
}

static bool is_last(void)
{
	int n = wanted();

	return n > 0 && atomic_fetch_add(&changes, 1) + 1 == n;
}

static void die(const char *call, const char *path)
{
	char name[4096], line[4200];
	int fd, n;

	snprintf(name, sizeof name, "%s.said", getenv("KILL_AT"));
	fd = NEXT(open)(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	n = snprintf(line, sizeof line, "%s %s\n", call, path);
	if (fd >= 0 && NEXT(write)(fd, line, (size_t)n) != n)
		abort();
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static void change(const char *call, const char *path)
{
	if (is_last())
		die(call, path);
}

/* Its path, where it is a file or a folder and no stream of the program's own. */
static bool is_file(int fd, char path[4096])
{
	struct stat st;
	char link[64];
	ssize_t n;

	if (fd <= STDERR_FILENO || fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, 4095);
	path[n < 0 ? 0 : n] = '\0';
	return true;
}

static void change_fd(const char *call, int fd)
{
	char path[4096];

	if (is_file(fd, path))
		change(call, path);
}

#define PATH_CALL(name, declaration, path, is_change, arguments)                                                       \
	int name declaration;                                                                                          \
	int name declaration                                                                                           \
	{                                                                                                              \
		if (is_change)                                                                                         \
			change(#name, path);                                                                           \
		return NEXT(name) arguments;                                                                           \
	}

PATH_CALL(mkdir, (const char *path, mode_t mode), path, access(path, F_OK) != 0, (path, mode))
PATH_CALL(rename, (const char *from, const char *to), to, true, (from, to))
PATH_CALL(renameat, (int dir, const char *from, int dir_to, const char *to), to, true, (dir, from, dir_to, to))
PATH_CALL(link, (const char *from, const char *to), to, true, (from, to))
PATH_CALL(chmod, (const char *path, mode_t mode), path, true, (path, mode))
PATH_CALL(unlink, (const char *path), path, access(path, F_OK) == 0, (path))
PATH_CALL(unlinkat, (int dir, const char *path, int flags), path, faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0,
	  (dir, path, flags))

#define FD_CALL(name, declaration, arguments)                                                                          \
	int name declaration;                                                                                          \
	int name declaration                                                                                           \
	{                                                                                                              \
		change_fd(#name, fd);                                                                                  \
		return NEXT(name) arguments;                                                                           \
	}

FD_CALL(fsync, (int fd), (fd))
FD_CALL(fchmod, (int fd, mode_t mode), (fd, mode))
FD_CALL(ftruncate, (int fd, off_t size), (fd, size))

int open(const char *path, int flags, ...)
{
	va_list more;
	mode_t mode;

	va_start(more, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
	va_end(more);
	if ((flags & O_CREAT) != 0 && access(path, F_OK) != 0)
		change("open", path);
	return NEXT(open)(path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	char path[4096];
	bool last = is_file(fd, path) && is_last();
	ssize_t done = NEXT(write)(fd, bytes, last ? n / 2 : n);

	if (last)
		die("write", path);
	return done;
}

/* What the region's file is made with (region/sys.h). */
long syscall(long number, ...)
{
	va_list more;
	long a[6];

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	if (number == SYS_openat && (a[2] & O_CREAT) != 0)
		change("open", (const char *)a[1]);
	else if (number == SYS_fallocate)
		change_fd("fallocate", (int)a[0]);
	else if (number == SYS_pwrite64)
		change_fd("pwrite", (int)a[0]);
	return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
