#include "agent/claims/state_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "core/cleanup.h"
#include "io/file.h"

enum { LOOK_MS = 50 };

void state_lock_signals(sigset_t *out)
{
	sigemptyset(out);
	sigaddset(out, SIGTERM);
	sigaddset(out, SIGINT);
	sigaddset(out, SIGQUIT);
}

/* One wait; true where a signal asks to end. */
static bool asked_to_end(void)
{
	const struct timespec wait = { .tv_nsec = LOOK_MS * 1000000L };
	sigset_t ending;

	state_lock_signals(&ending);
	return sigtimedwait(&ending, NULL, &wait) > 0;
}

static int wait_for_lock(int fd, const char *folder, uint32_t wait_ms, struct hm_err *e)
{
	for (uint32_t waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += LOOK_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return hm_err_errno(e, errno, "lock %s", folder);
		if (waited == 0)
			log_warn("another agent has this state folder; waiting for its end", KV("folder", folder));
		if (waited >= wait_ms)
			return hm_err_set(
				e, HM_EEXIST,
				"another hami-device-plugin runs with the state folder %s: end it, or use another "
				"--state-dir",
				folder);
		if (asked_to_end())
			return 1;
	}
	return 0;
}

int state_lock(const char *folder, uint32_t wait_ms, int *fd, struct hm_err *e)
{
	hm_auto_fd at = -1;
	int r;

	if (file_mkdirs(folder, 0755, e) < 0)
		return -e->code;
	at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return hm_err_errno(e, errno, "open %s", folder);
	r = wait_for_lock(at, folder, wait_ms, e);
	if (r == 0)
		*fd = hm_steal_fd(&at);
	return r;
}
