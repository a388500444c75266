#include "agent/processes/sight.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "core/num.h"

/* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h. */
static const ino_t first_namespace = 0xEFFFFFFC;

static ino_t namespace_of(const char *proc, const char *pid)
{
	char path[PATH_MAX];
	struct stat st;

	hm_fmt(path, sizeof path, "%s/%s/ns/pid", proc, pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* The listener's pid as we see it: 0 where it lives in a namespace above ours. A full backlog counts as "no". */
static bool sees_listener(const char *socket_path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct ucred who = { 0 };
	socklen_t n = sizeof who;
	hm_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (socket_path[0] == '\0' || hm_fmt(to.sun_path, sizeof to.sun_path, "%s", socket_path) >= sizeof to.sun_path)
		return false;
	return fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid > 0;
}

static bool sees_another_namespace(const char *proc, ino_t own)
{
	DIR *dir = opendir(proc);
	struct dirent *d;
	bool found = false;

	while (dir != NULL && !found && (d = readdir(dir)) != NULL) {
		uint64_t pid;
		ino_t ns = num_u64_str(d->d_name, INT32_MAX, &pid) ? namespace_of(proc, d->d_name) : 0;

		found = ns != 0 && ns != own;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

bool sight_of_node(const char *proc, const char *kubelet_socket)
{
	ino_t own = namespace_of(proc, "self");

	return own == first_namespace || sees_listener(kubelet_socket) || sees_another_namespace(proc, own);
}
