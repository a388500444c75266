#include "region/process_id.h"

#include <errno.h>
#include <string.h>

#include "core/cursor.h"
#include "core/fmt.h"
#include "region/sys.h"

/* Numbering as in proc(5). The fields behind the command's ")" begin with number 3. */
enum { FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START_TIME = 22 };

long read_small_file(const char *path, char *out, size_t cap)
{
	int saved = errno;
	size_t n = 0;
	long r = 1;
	int fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

	if (fd < 0) {
		r = -errno;
		errno = saved;
		return r;
	}
	while (n < cap && r > 0) {
		r = sys_read(fd, out + n, cap - n);
		if (r < 0 && errno == EINTR)
			r = 1;
		else if (r > 0)
			n += (size_t)r;
	}
	if (r < 0)
		r = -errno;
	sys_close(fd);
	errno = saved;
	return r < 0 ? r : (long)n;
}

static const char *behind_command(const char *text, size_t n)
{
	while (n > 0 && text[n - 1] != ')')
		n--;
	return n > 0 && n > 1 ? text + n : NULL;
}

bool process_stat_parse(const char *text, size_t n, uint64_t *start_time, bool *dead)
{
	const char *rest = behind_command(text, n);
	uint64_t threads = 0, value = 0;
	struct piece state = { "", 0 };
	struct cur c;

	if (rest == NULL || rest == text + n)
		return false;
	c = cur_of(rest, (size_t)(text + n - rest));
	cur_word(&c, " ");
	for (int field = FIELD_STATE; field <= FIELD_START_TIME; field++) {
		struct piece s = cur_until(&c, ' ');

		if (c.bad)
			return false;
		if (field == FIELD_STATE)
			state = s;
		else if (field == FIELD_THREADS && !piece_u64(s, UINT32_MAX, &threads))
			return false;
		else if (field == FIELD_START_TIME && !piece_u64(s, UINT64_MAX, &value))
			return false;
	}
	if (state.n != 1)
		return false;
	/* A main thread that ended before the others is a zombie too, but its process lives. */
	*dead = (state.p[0] == 'Z' || state.p[0] == 'X') && threads <= 1;
	*start_time = value;
	return true;
}

bool process_status_inner_pid(const char *text, size_t n, uint64_t *pid)
{
	struct cur c = cur_of(text, n);

	while (!cur_at_end(&c) && !c.bad) {
		struct piece line = cur_line(&c);
		struct piece last = line;

		if (!piece_starts(line, "NSpid:\t"))
			continue;
		while (last.n > 0 && last.p[last.n - 1] != '\t')
			last.n--;
		return piece_u64((struct piece) { line.p + last.n, line.n - last.n }, UINT32_MAX, pid);
	}
	return false;
}

static bool read_stat(const char *path, uint64_t *start_time, bool *dead)
{
	char text[1024];
	long n = read_small_file(path, text, sizeof text);

	return n > 0 && process_stat_parse(text, (size_t)n, start_time, dead);
}

static uint32_t own_namespace(void)
{
	static const char prefix[] = "pid:[";
	char text[64];
	int saved = errno;
	long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/ns/pid", text, sizeof text);
	struct cur c;
	uint64_t inode;

	errno = saved;
	if (n <= 0)
		return 1;
	c = cur_of(text, (size_t)n);
	cur_word(&c, prefix);
	inode = cur_u64(&c, ']', UINT32_MAX);
	return c.bad || inode == 0 ? 1 : (uint32_t)inode;
}

struct process_id process_id_self(void)
{
	struct process_id id = { .pid = (uint32_t)syscall(SYS_getpid), .pid_namespace = own_namespace() };
	char path[32];
	bool dead;

	hm_fmt(path, sizeof path, "/proc/%u/stat", id.pid);
	if (!read_stat(path, &id.start_time, &dead))
		id.start_time = 0;
	return id;
}

bool process_id_alive(uint32_t pid, uint64_t start_time)
{
	int saved = errno;
	bool gone = syscall(SYS_kill, (pid_t)pid, 0) < 0 && errno == ESRCH;
	uint64_t started;
	char path[32];
	bool dead;

	errno = saved;
	if (gone)
		return false;
	hm_fmt(path, sizeof path, "/proc/%u/stat", pid);
	if (!read_stat(path, &started, &dead))
		return true;
	return !dead && (start_time == 0 || started == start_time);
}
