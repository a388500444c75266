#include "child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

struct child child_start(const char *role)
{
	struct child c;
	int pair[2];
	char number[12];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	fflush(stdout);
	c.pid = fork();
	if (c.pid == 0) {
		int kept = dup(pair[1]); /* without close-on-exec */

		snprintf(number, sizeof number, "%d", kept);
		execl("/proc/self/exe", "cuda-path", "--role", role, number, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	c.sock = pair[0];
	return c;
}

struct child child_start_ready(const char *role)
{
	struct child c = child_start(role);

	child_await(c.sock);
	return c;
}

void child_tell(int sock, const void *data, size_t bytes, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)data, bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		control.header = (struct cmsghdr) { .cmsg_len = CMSG_LEN(sizeof fd),
						    .cmsg_level = SOL_SOCKET,
						    .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	}
	if (sendmsg(sock, &m, MSG_NOSIGNAL) != (ssize_t)bytes) {
		printf("cannot: the other process is gone\n");
		exit(CHECK_CANNOT);
	}
}

int child_hear(int sock, void *data, size_t bytes)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { data, bytes };
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	int fd = -1;
	ssize_t n = recvmsg(sock, &m, 0);

	if (n != (ssize_t)bytes) {
		int status = 0;

		if (n == 0 && wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0)
			exit(WEXITSTATUS(status));
		printf("cannot: the other process ended\n");
		exit(CHECK_CANNOT);
	}
	if (m.msg_controllen >= CMSG_LEN(sizeof fd))
		memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
	return fd;
}

void child_nod(int sock)
{
	child_tell(sock, "", 1, -1);
}

void child_await(int sock)
{
	char byte;

	(void)child_hear(sock, &byte, 1);
}

void child_wait(int sock)
{
	char byte;

	while (recv(sock, &byte, 1, 0) > 0)
		;
}

void child_end(struct child *c)
{
	int status = 0;

	close(c->sock);
	waitpid(c->pid, &status, 0);
	HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process ended with status %#x",
	      (unsigned)status);
}

void child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->sock);
}
