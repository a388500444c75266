/* Other processes of the same container: this program again, in a role. */
#ifndef HM_TESTS_CUDA_CHILD_H
#define HM_TESTS_CUDA_CHILD_H

#include <stddef.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int sock; /* a socket pair: whole messages, each with a file descriptor or without */
};

/* Starts the role; what it prints goes where ours goes. */
struct child child_start(const char *role);

/* The same, and waits for its first nod. */
struct child child_start_ready(const char *role);

/* One message of exactly so many bytes, with a descriptor where fd is not -1. */
void child_tell(int sock, const void *data, size_t bytes, int fd);

/* Waits for one; its descriptor, or -1. Ends the program (as its own exit status says) where the other one ended. */
int child_hear(int sock, void *data, size_t bytes);

/* A message without content: "done", or "go on". */
void child_nod(int sock);
void child_await(int sock);

/* In a role: waits until the other one has closed its end. */
void child_wait(int sock);

/* Closes our end, upon which it ends, and waits; its exit status becomes part of ours. */
void child_end(struct child *c);
void child_kill(struct child *c);

/* Roles, in main.c's table: each is given the socket. */
struct role {
	const char *name;
	void (*run)(int sock);
};

#endif
