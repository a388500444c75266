/* 1. sim_attach: connect, HELLO, map the state that the reply brings. Enough for readers (NVML).
 * 2. The first charge or submit asks for a process number (JOIN). From then on memory and work go through the shared
 *    state under the card's lock; the socket only says that we live.
 * 3. A fork's child closes what it inherited and starts at 1: its parent's number is not its own.
 * 4. A reload of the driver changes the node's generation: what we held is gone, SIM_RELOADED for ever. */
#include "sim/lib/sim_client.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_admin.h"

enum { NOBODY = SIM_MAX_PROCESSES };

/* Sleeping threads look anew this often: others' deaths and a lost card end a wait without a word to us. */
#define LOOK_NS 10000000ULL
/* Below this a sleep's overshoot is worse than spinning. */
#define SPIN_NS 80000ULL

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* connection, joining */
static struct sim_node *_Atomic node;
static _Atomic unsigned me = NOBODY;
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
	atomic_store(&me, NOBODY);
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

static bool send_request(const struct sim_request *q)
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

	if (!send_request(q) || !receive_reply(r, &fd))
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
	if (send_request(&q) && receive_reply(&r, &state) && r.result == SIM_OK && state >= 0)
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

static enum sim_result attached(struct sim_node **out)
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
		return attached(&n);
	pthread_mutex_lock(&mutex);
	r = atomic_load(&node) != NULL ? SIM_OK : connect_node();
	pthread_mutex_unlock(&mutex);
	return r;
}

void sim_detach(void)
{
	pthread_mutex_lock(&mutex);
	if (atomic_load(&me) == NOBODY)
		forget();
	pthread_mutex_unlock(&mutex);
}

const struct sim_node *sim_node(void)
{
	return atomic_load_explicit(&node, memory_order_acquire);
}

enum sim_result sim_join(bool holder)
{
	struct sim_request q = { .op = SIM_OP_JOIN, .a = holder };
	struct sim_reply reply;
	enum sim_result r = SIM_OK;

	pthread_mutex_lock(&mutex);
	if (atomic_load(&me) == NOBODY) {
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

/* The card, locked, as a joined process sees it. */
static enum sim_result enter(unsigned card, struct sim_node **n, unsigned *process)
{
	enum sim_result r = sim_attach();

	if (r == SIM_OK)
		r = attached(n);
	if (HM_UNLIKELY(r == SIM_OK && atomic_load_explicit(&me, memory_order_relaxed) == NOBODY))
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

/* ---- Memory */

static enum sim_result change_memory(unsigned card, enum sim_mem_kind kind, uint64_t bytes,
				     enum sim_result (*change)(struct sim_card *, unsigned, enum sim_mem_kind,
							       uint64_t))
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	r = change(&n->cards[card], process, kind, bytes);
	sim_card_unlock(&n->cards[card]);
	return r;
}

enum sim_result sim_mem_charge(unsigned card, enum sim_mem_kind kind, uint64_t bytes)
{
	return change_memory(card, kind, bytes, sim_ledger_charge);
}

enum sim_result sim_mem_release(unsigned card, enum sim_mem_kind kind, uint64_t bytes)
{
	return change_memory(card, kind, bytes, sim_ledger_release);
}

uint64_t sim_mem_used(unsigned card)
{
	struct sim_node *n;

	return attached(&n) == SIM_OK && card < n->card_count ? atomic_load(&n->cards[card].used_bytes) : 0;
}

uint64_t sim_mem_own(unsigned card)
{
	unsigned process = atomic_load(&me);
	struct sim_node *n;

	if (attached(&n) != SIM_OK || card >= n->card_count || process == NOBODY)
		return 0;
	return atomic_load(&n->cards[card].shares[process].data_bytes) +
	       atomic_load(&n->cards[card].shares[process].context_bytes);
}

enum sim_result sim_card_state(unsigned card)
{
	unsigned process = atomic_load_explicit(&me, memory_order_relaxed);
	struct sim_node *n;
	enum sim_result r = attached(&n);
	uint32_t epoch;

	if (r != SIM_OK)
		return r;
	if (card >= n->card_count)
		return SIM_NO_CARD;
	if (atomic_load(&n->cards[card].lost) != 0)
		return SIM_LOST;
	if (process == NOBODY)
		return SIM_OK;
	epoch = atomic_load(&n->cards[card].shares[process].epoch);
	return epoch == 0 || epoch == atomic_load(&n->cards[card].epoch) ? SIM_OK : SIM_LOST;
}

/* ---- Compute */

uint64_t sim_now_ns(void)
{
	struct sim_node *n = atomic_load_explicit(&node, memory_order_acquire);

	return n != NULL ? sim_clock_now(n) : sim_monotonic_ns();
}

enum sim_result sim_work_submit(unsigned card, uint64_t busy_ns, uint64_t *ticket)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = enter(card, &n, &process);
	struct sim_process *p;

	if (r != SIM_OK)
		return r;
	p = &n->processes[process];
	r = sim_share_enter(&n->cards[card], process);
	if (r == SIM_OK) {
		sim_engine_advance(n, card, sim_clock_now(n));
		*ticket = sim_engine_submit(&n->cards[card], process, busy_ns);
		/* Both have one writer at a time only per card; a lost count only delays the idle check. */
		atomic_store_explicit(&p->activity, atomic_load_explicit(&p->activity, memory_order_relaxed) + 1,
				      memory_order_relaxed);
		atomic_store_explicit(&p->computes, 1, memory_order_relaxed);
	}
	sim_card_unlock(&n->cards[card]);
	return r;
}

/* Runs the engine to the present. *expect: when the ticket may be done, 0 where it is. */
static enum sim_result look(unsigned card, uint64_t ticket, uint64_t *expect)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	r = sim_share_enter(&n->cards[card], process);
	if (r == SIM_OK) {
		sim_engine_advance(n, card, sim_clock_now(n));
		*expect = sim_engine_expect(&n->cards[card], process, ticket);
	}
	sim_card_unlock(&n->cards[card]);
	return r;
}

bool sim_work_done(unsigned card, uint64_t ticket)
{
	unsigned process = atomic_load_explicit(&me, memory_order_relaxed);
	struct sim_node *n;
	uint64_t expect;

	if (attached(&n) != SIM_OK || process == NOBODY || card >= n->card_count)
		return true; /* nothing of ours is left there */
	if (atomic_load_explicit(&n->cards[card].shares[process].done_ns, memory_order_acquire) >= ticket)
		return true;
	return look(card, ticket, &expect) != SIM_OK || expect == 0;
}

/* Sleeps until about `at` on the wall, at most LOOK_NS; spins the last stretch. */
static void wall_sleep(uint64_t at)
{
	uint64_t now = sim_monotonic_ns(), wake;
	struct timespec t;

	if (at <= now)
		return;
	if (at - now <= SPIN_NS) {
		while (sim_monotonic_ns() < at) {
		}
		return;
	}
	wake = HM_MIN(at - SPIN_NS, now + LOOK_NS);
	t = (struct timespec) { .tv_sec = (time_t)(wake / 1000000000), .tv_nsec = (long)(wake % 1000000000) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Virtual: tells the daemon what we wait for, then sleeps until it says that something happened. */
static enum sim_result virtual_wait(const struct sim_request *q, uint32_t seen)
{
	struct timespec patience = { 0, 200000000 };
	struct sim_node *n;
	enum sim_result r = attached(&n);
	struct sim_process *p;

	if (r != SIM_OK)
		return r;
	p = &n->processes[atomic_load(&me)];
	if (q != NULL && !send_request(q))
		return SIM_NO_NODE;
	syscall(SYS_futex, &p->wake, FUTEX_WAIT, seen, &patience, NULL, 0);
	return SIM_OK;
}

static uint32_t wake_count(void)
{
	struct sim_node *n = atomic_load(&node);
	unsigned process = atomic_load(&me);

	return n != NULL && process != NOBODY ? atomic_load(&n->processes[process].wake) : 0;
}

enum sim_result sim_work_wait(unsigned card, uint64_t ticket)
{
	struct sim_request q = { .op = SIM_OP_WAIT, .card = card, .a = ticket };
	bool said = false;

	for (;;) {
		uint32_t seen = wake_count();
		uint64_t expect = 0;
		enum sim_result r = look(card, ticket, &expect);

		if (r != SIM_OK || expect == 0)
			return r;
		if (sim_node()->clock == SIM_CLOCK_VIRTUAL) {
			r = virtual_wait(said ? NULL : &q, seen);
			said = true;
			if (r != SIM_OK)
				return r;
		} else {
			wall_sleep(expect);
		}
	}
}

enum sim_result sim_work_end_ns(unsigned card, uint64_t ticket, uint64_t *ns)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	sim_engine_advance(n, card, sim_clock_now(n));
	r = sim_engine_end_of(n, card, process, ticket, ns) ? SIM_OK : SIM_NOT_FOUND;
	sim_card_unlock(&n->cards[card]);
	return r;
}

enum sim_result sim_sleep_until(uint64_t ns)
{
	struct sim_request q = { .op = SIM_OP_SLEEP, .a = ns };
	enum sim_result r = sim_attach();
	bool said = false;

	if (r == SIM_OK && sim_node()->clock == SIM_CLOCK_VIRTUAL && atomic_load(&me) == NOBODY)
		r = sim_join(false);
	while (r == SIM_OK) {
		uint32_t seen = wake_count();

		if (sim_now_ns() >= ns)
			return SIM_OK;
		if (sim_node()->clock == SIM_CLOCK_VIRTUAL) {
			r = virtual_wait(said ? NULL : &q, seen);
			said = true;
		} else {
			wall_sleep(ns);
		}
	}
	return r;
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

enum sim_result sim_sync(void)
{
	struct sim_request q = { .op = SIM_OP_SYNC };
	struct sim_reply reply;
	struct sim_node *n;
	enum sim_result r = attached(&n);

	return r == SIM_OK ? sim_control(&q, &reply) : r;
}

bool sim_wait_end(int timeout_ms)
{
	struct pollfd p = { .fd = sock, .events = 0 };

	return poll(&p, 1, timeout_ms) > 0;
}

/* ---- Faults */

int sim_nvml_code(unsigned card, const char *call)
{
	struct sim_node *n;

	if (attached(&n) != SIM_OK || card >= n->card_count)
		return 0;
	for (unsigned i = 0; i < SIM_MAX_FAULTS; i++) {
		const struct sim_fault *f = &n->cards[card].faults[i];
		int code = atomic_load_explicit(&f->code, memory_order_acquire);

		if (code != 0 && strncmp(f->call, call, sizeof f->call) == 0)
			return code;
	}
	return 0;
}

int sim_nvml_fault(unsigned card, const char *call)
{
	struct timespec tick = { 0, 5000000 };
	struct sim_node *n;

	if (attached(&n) != SIM_OK || card >= n->card_count)
		return 0;
	while (sim_monotonic_ns() < atomic_load(&n->cards[card].hang_until_ns))
		nanosleep(&tick, NULL);
	return sim_nvml_code(card, call);
}
