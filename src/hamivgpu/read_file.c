#include "hamivgpu/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, const char *path, size_t max_bytes, struct str *out, struct hm_err *e)
{
	char piece[4096];

	for (;;) {
		ssize_t n = read(fd, piece, sizeof piece);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hm_err_errno(e, errno, "read %s", path);
		if (n == 0)
			return 0;
		if (out->n + (size_t)n > max_bytes)
			return hm_err_set(e, HM_ELIMIT, "%s: larger than %zu bytes", path, max_bytes);
		str_add_n(out, piece, (size_t)n);
		if (str_failed(out))
			return hm_err_set(e, HM_ENOMEM, "read %s", path);
	}
}

int read_file_at(int dir, const char *name, const char *path, size_t max_bytes, struct str *out, struct hm_err *e)
{
	/* O_NONBLOCK: a pipe in the file's place must not stop us. */
	hm_auto_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	str_clear(out);
	if (fd < 0 && errno == ELOOP)
		return hm_err_set(e, HM_EPROTO, "%s: is a link, not a file", path);
	if (fd < 0)
		return hm_err_errno(e, errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return hm_err_errno(e, errno, "stat %s", path);
	if (!S_ISREG(st.st_mode))
		return hm_err_set(e, HM_EPROTO, "%s: is no plain file", path);
	return read_all(fd, path, max_bytes, out, e);
}
