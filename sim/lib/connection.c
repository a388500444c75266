/* 1. sim_attach: connect, HELLO, map the state that the reply brings. Enough for readers (NVML).
 * 2. The first charge or submit asks for a process number (JOIN). From then on memory and work go through the shared
 *    state under the card's lock; the socket only says that we live.
 * 3. A fork's child closes what it inherited and starts at 1: its parent's number is not its own.
 * 4. A reload of the driver changes the node's generation: what we held is gone, SIM_RELOADED for ever. */
#include "sim/lib/connection.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_admin.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* connection, joining */
static struct sim_node *_Atomic node;
static _Atomic unsigned me = SIM_NOBODY;
static uint32_t generation;
static uint64_t my_join; /* processes[me].join while the number is ours */
static int sock = -1;
static struct stat sock_stat; /* a program that closes all descriptors may have put another file there */

/* ---- Connection; the mutex is held */

static void drop_connection(void)
{
	struct stat now;

	if (sock >= 0 && fstat(sock, &now) == 0 && now.st_ino == sock_stat.st_ino && now.st_dev == sock_stat.st_dev)
		close(sock);
	sock = -1;
}

static void forget(void)
{
	struct sim_node *n = atomic_exchange(&node, NULL);

	drop_connection();
	if (n != NULL)
		munmap(n, sizeof *n);
	atomic_store(&me, SIM_NOBODY);
}

static void before_fork(void)
{
	pthread_mutex_lock(&mutex);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&mutex);
}

static void after_fork_child(void)
{
	forget();
	pthread_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static int dial(void)
{
	const char *dir = getenv(SIM_ENV_DIR);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	hm_auto_fd fd = -1;

	if (dir == NULL || *dir == '\0' ||
	    hm_fmt(a.sun_path, sizeof a.sun_path, "%s/%s", dir, SIM_SOCKET) >= sizeof a.sun_path)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return -1;
	return hm_steal_fd(&fd);
}

bool sim_send(const struct sim_request *q)
{
	struct stat now;

	if (sock < 0 || fstat(sock, &now) < 0 || now.st_ino != sock_stat.st_ino || now.st_dev != sock_stat.st_dev)
		return false;
	return send(sock, q, sizeof *q, MSG_NOSIGNAL) == (ssize_t)sizeof *q;
}

/* *fd is the descriptor that came along, or -1. */
static bool receive_reply(struct sim_reply *r, int *fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { r, sizeof *r };
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	const struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*fd = -1;
	if (n < 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return n == (ssize_t)sizeof *r;
}

static enum sim_result ask(const struct sim_request *q, struct sim_reply *r)
{
	int fd;

	if (!sim_send(q) || !receive_reply(r, &fd))
		return SIM_NO_NODE;
	if (fd >= 0)
		close(fd);
	return (enum sim_result)r->result;
}

static struct sim_node *map_state(int fd)
{
	struct sim_node *n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (n == MAP_FAILED)
		return NULL;
	if (n->magic != SIM_MAGIC || n->version != SIM_VERSION || n->bytes != sizeof *n ||
	    n->card_count > SIM_MAX_CARDS) {
		munmap(n, sizeof *n);
		return NULL;
	}
	return n;
}

static enum sim_result connect_node(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sim_request q = { .op = SIM_OP_HELLO };
	struct sim_reply r;
	hm_auto_fd state = -1;
	struct sim_node *n = NULL;

	pthread_once(&once, watch_forks);
	sock = dial();
	if (sock < 0 || fstat(sock, &sock_stat) < 0)
		return SIM_NO_NODE;
	if (sim_send(&q) && receive_reply(&r, &state) && r.result == SIM_OK && state >= 0)
		n = map_state(state);
	if (n == NULL) {
		drop_connection();
		return SIM_NO_NODE;
	}
	generation = (uint32_t)r.a;
	atomic_store_explicit(&node, n, memory_order_release);
	return SIM_OK;
}

/* ---- Attached and joined */

enum sim_result sim_attached(struct sim_node **out)
{
	struct sim_node *n = atomic_load_explicit(&node, memory_order_acquire);

	if (HM_UNLIKELY(n == NULL))
		return SIM_NO_NODE;
	if (HM_UNLIKELY(atomic_load_explicit(&n->loaded, memory_order_relaxed) == 0 ||
			atomic_load_explicit(&n->generation, memory_order_relaxed) != generation))
		return SIM_RELOADED;
	*out = n;
	return SIM_OK;
}

enum sim_result sim_attach(void)
{
	enum sim_result r;
	struct sim_node *n;

	if (HM_LIKELY(atomic_load_explicit(&node, memory_order_acquire) != NULL))
		return sim_attached(&n);
	pthread_mutex_lock(&mutex);
	r = atomic_load(&node) != NULL ? SIM_OK : connect_node();
	pthread_mutex_unlock(&mutex);
	return r;
}

void sim_detach(void)
{
	pthread_mutex_lock(&mutex);
	if (atomic_load(&me) == SIM_NOBODY)
		forget();
	pthread_mutex_unlock(&mutex);
}

const struct sim_node *sim_node(void)
{
	return atomic_load_explicit(&node, memory_order_acquire);
}

unsigned sim_me(void)
{
	return atomic_load_explicit(&me, memory_order_relaxed);
}

enum sim_result sim_join(bool holder)
{
	struct sim_request q = { .op = SIM_OP_JOIN, .a = holder };
	struct sim_reply reply;
	enum sim_result r = SIM_OK;

	pthread_mutex_lock(&mutex);
	if (atomic_load(&me) == SIM_NOBODY) {
		r = ask(&q, &reply);
		if (r == SIM_OK && reply.a >= SIM_MAX_PROCESSES)
			r = SIM_FAILED;
		if (r == SIM_OK) {
			my_join = atomic_load(&atomic_load(&node)->processes[reply.a].join);
			atomic_store(&me, (unsigned)reply.a);
		}
	}
	pthread_mutex_unlock(&mutex);
	return r;
}

enum sim_result sim_enter(unsigned card, struct sim_node **n, unsigned *process)
{
	enum sim_result r = sim_attach();

	if (r == SIM_OK)
		r = sim_attached(n);
	if (HM_UNLIKELY(r == SIM_OK && atomic_load_explicit(&me, memory_order_relaxed) == SIM_NOBODY))
		r = sim_join(false);
	if (HM_UNLIKELY(r != SIM_OK))
		return r;
	if (HM_UNLIKELY(card >= (*n)->card_count))
		return SIM_NO_CARD;
	*process = atomic_load_explicit(&me, memory_order_relaxed);
	if (HM_UNLIKELY(atomic_load_explicit(&(*n)->processes[*process].join, memory_order_relaxed) != my_join))
		return SIM_RELOADED; /* something closed our connection, as by closing every descriptor */
	return HM_LIKELY(sim_card_lock(&(*n)->cards[card], *process + 1)) ? SIM_OK : SIM_FAILED;
}

/* ---- Asking the daemon */

enum sim_result sim_control(const struct sim_request *q, struct sim_reply *reply)
{
	enum sim_result r = sim_attach();

	*reply = (struct sim_reply) { 0 };
	/* A node whose driver is just being reloaded has no attach, but it can be stopped. */
	pthread_mutex_lock(&mutex);
	if (sock < 0) {
		sock = dial();
		if (sock >= 0 && fstat(sock, &sock_stat) < 0)
			drop_connection();
	}
	r = ask(q, reply);
	pthread_mutex_unlock(&mutex);
	return r;
}

bool sim_wait_end(int timeout_ms)
{
	struct pollfd p = { .fd = sock, .events = 0 };

	return poll(&p, 1, timeout_ms) > 0;
}
