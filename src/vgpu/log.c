#include "vgpu/log.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contract/container.h"
#include "core/check.h"
#include "core/fmt.h"
#include "vgpu/env_limits.h"
#include "vgpu/state.h"

enum { MAX_LINES = 20 };

void vgpu_log(const char *text)
{
	static _Atomic unsigned lines;
	const char *wanted = env_find(environ, HM_ENV_LIBVGPU_LOG);
	char line[256];
	int saved = errno;
	size_t n;

	if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "0") == 0 || lines++ >= MAX_LINES)
		return;
	n = hm_fmt(line, sizeof line, "libvgpu[%d]: %s\n", (int)syscall(SYS_getpid), text);
	n = HM_MIN(n, sizeof line - 1);
	for (size_t i = 0; i + 1 < n; i++) {
		if ((unsigned char)line[i] < ' ' || (unsigned char)line[i] > '~')
			line[i] = '?';
	}
	syscall(SYS_write, 2, line, n);
	errno = saved;
}

/* A bug of ours must not end somebody's program: it is counted, and nothing more may be allocated. */
void hm_check_failed(const char *file, int line, const char *what)
{
	struct vgpu *v = vgpu_get();

	if (v == NULL)
		return;
	v->mode = VGPU_REFUSE;
	vgpu_trouble(v, "no more allocations: check failed at %s:%d: %s", file, line, what);
}
