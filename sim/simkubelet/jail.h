/* A process as the first one of mount, pid and ipc namespaces of its own, on a root of its own: an overlay over the
 * machine's, whose changes nobody outside sees and which vanishes with the namespace; so there is nothing to clean up,
 * not even after SIGKILL, and the process dies with its parent. /dev holds the usual nodes only, /run is empty. */
#ifndef HM_SIMKUBELET_JAIL_H
#define HM_SIMKUBELET_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

struct jail_mount {
	const char *host, *container; /* a file, node or folder; what is missing of the container's path is made */
	unsigned long flags;          /* MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC */
};

struct jail {
	const char *stage; /* an empty folder of the machine: the root is put together there, unseen */
	const struct jail_mount *mounts;
	size_t mount_count;
	char *const *argv, *const *env;
	int64_t user, group; /* -1: as it is */
	int log_fd;          /* becomes stdout and stderr */
	bool user_namespace; /* for callers that are not root */
};

/* *pid is the process as this pid namespace sees it: a child, to be waited for. The error says which step failed. */
int jail_start(const struct jail *j, pid_t *pid, struct hm_err *e) HM_MUST_USE;

/* Runs argv inside the namespaces and root of `pid` (a jail's process), with that process's environment; what goes
 * wrong is said on stderr. The command's exit status, as a shell has it. */
int jail_enter(pid_t pid, char *const *argv, struct hm_err *e) HM_MUST_USE;

#endif
