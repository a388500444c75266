#include "sim/simd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "core/fmt.h"
#include "sim/lib/engine.h"

enum {
	TICK_MS = 160, /* a little under SIM_SAMPLE_NS, so that each period is looked at in time */
	ACCEPT_PAUSE_MS =
		100, /* after the process ran out of descriptors: the listener stays readable and would spin */
};

void server_wake(struct server *s, unsigned process)
{
	_Atomic uint32_t *wake = &s->node->processes[process].wake;

	atomic_fetch_add(wake, 1);
	syscall(SYS_futex, wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- Locks of the dead */

static const struct client *client_of(const struct server *s, unsigned process)
{
	LIST_FOR_EACH (&s->clients, l) {
		const struct client *c = HM_CONTAINER(l, struct client, on);

		if (c->process == process)
			return c;
	}
	return NULL;
}

static bool is_dead(const struct client *c)
{
	struct pollfd p = { .fd = c->pid_fd, .events = POLLIN };

	if (c->pid_fd >= 0)
		return poll(&p, 1, 0) > 0;
	return c->pid != 0 && kill((pid_t)c->pid, 0) < 0 && errno == ESRCH;
}

void server_lock_card(struct server *s, unsigned card)
{
	struct sim_card *c = &s->node->cards[card];
	uint64_t start = sim_monotonic_ns();

	while (!sim_card_try_lock(c, SIM_LOCK_DAEMON)) {
		uint32_t owner = atomic_load(&c->lock);
		bool late = sim_monotonic_ns() - start > SIM_LOCK_PATIENCE_NS;
		const struct client *holder = owner - 1 < SIM_MAX_PROCESSES ? client_of(s, owner - 1) : NULL;

		if (owner != 0 && (holder == NULL || is_dead(holder) || late)) {
			log_warn("broke a card's lock", KV_U64("card", card), KV_U64("owner", owner));
			atomic_compare_exchange_strong(&c->lock, &owner, 0);
		}
		sched_yield();
	}
}

void server_sync(struct server *s)
{
	for (unsigned i = 0; i < s->node->card_count; i++) {
		server_lock_card(s, i);
		sim_engine_advance(s->node, i, sim_clock_now(s->node));
		sim_card_unlock(&s->node->cards[i]);
	}
}

/* ---- Processes */

void server_end_process(struct server *s, struct client *c)
{
	unsigned number = c->process;

	if (number == NO_PROCESS)
		return;
	clock_forget(s, c);
	for (unsigned i = 0; i < s->node->card_count; i++) {
		server_lock_card(s, i);
		sim_engine_advance(s->node, i, sim_clock_now(s->node));
		sim_share_clear(&s->node->cards[i], number);
		sim_card_unlock(&s->node->cards[i]);
	}
	c->process = NO_PROCESS;
	atomic_store(&s->node->processes[number].join, 0);
	atomic_store(&s->node->processes[number].pid, 0);
	server_wake(s, number);
	log_debug("process left", KV_U64("pid", c->pid), KV_U64("number", number));
}

static void client_free(struct client *c)
{
	struct server *s = c->server;

	server_end_process(s, c);
	loop_fd_free(c->watch);
	loop_fd_free(c->pid_watch);
	if (c->pid_fd >= 0)
		close(c->pid_fd);
	close(c->fd);
	link_remove(&c->on);
	free(c);
	clock_turn(s);
}

static void join(struct server *s, struct client *c, bool holder, struct sim_reply *r)
{
	unsigned number = 0;
	struct sim_process *p;

	while (number < SIM_MAX_PROCESSES && atomic_load(&s->node->processes[number].pid) != 0)
		number++;
	if (c->process != NO_PROCESS || number == SIM_MAX_PROCESSES) {
		r->result = SIM_FAILED;
		hm_fmt(r->text, sizeof r->text, "%s",
		       number == SIM_MAX_PROCESSES ? "too many processes" : "joined already");
		return;
	}
	p = &s->node->processes[number];
	atomic_store(&p->generation, atomic_load(&s->node->generation));
	atomic_store(&p->holder, holder);
	atomic_store(&p->computes, 0);
	atomic_store(&p->activity, 0);
	atomic_store(&p->join, ++s->joins);
	/* Where its pid cannot be seen from here it still needs one, to be told from a free number. */
	atomic_store(&p->pid, c->pid != 0 ? c->pid : UINT32_MAX);
	c->process = number;
	c->idle = false;
	c->seen_activity = 0;
	r->a = number;
	log_debug("process joined", KV_U64("pid", c->pid), KV_U64("number", number));
}

/* ---- Requests */

static void send_reply(const struct client *c, struct sim_reply *r, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { r, sizeof *r };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *h;

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof fd);
	}
	/* A client that does not read gets no reply; it is its own loss. */
	if (sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("cannot reply", KV_U64("pid", c->pid), KV("err", hm_errno_text(errno)));
}

static bool may_control(const struct client *c)
{
	return c->uid == 0 || c->uid == geteuid();
}

enum server_answer server_request(struct client *c, const void *bytes, size_t n, struct sim_reply *reply)
{
	struct server *s = c->server;
	struct sim_request q;

	if (n != sizeof q)
		return SERVER_HANG_UP;
	memcpy(&q, bytes, sizeof q);
	if (q.text[sizeof q.text - 1] != '\0')
		return SERVER_HANG_UP;
	*reply = (struct sim_reply) { .op = q.op };
	switch (q.op) {
	case SIM_OP_HELLO:
		reply->result = atomic_load(&s->node->loaded) != 0 ? SIM_OK : SIM_NO_NODE;
		reply->a = atomic_load(&s->node->generation);
		return SERVER_REPLY_WITH_STATE;
	case SIM_OP_JOIN: join(s, c, q.a == 1, reply); break;
	case SIM_OP_WAIT:
	case SIM_OP_SLEEP:
		if (clock_wait(s, c, &q) < 0)
			log_warn("a wait was dropped", KV_U64("pid", c->pid));
		return SERVER_SILENT;
	case SIM_OP_SYNC: server_sync(s); break;
	default:
		if (may_control(c))
			control_run(s, &q, reply);
		else {
			reply->result = SIM_FAILED;
			hm_fmt(reply->text, sizeof reply->text, "only root and the simulation's own user may do this");
		}
	}
	return SERVER_REPLY;
}

static void client_ready(void *arg, int events)
{
	struct client *c = arg;
	char bytes[sizeof(struct sim_request) + 1]; /* one more: a longer one is no request */
	struct sim_reply reply;
	ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
	enum server_answer answer;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	answer = n > 0 ? server_request(c, bytes, (size_t)n, &reply) : SERVER_HANG_UP;
	if (answer == SERVER_HANG_UP)
		client_free(c);
	else if (answer != SERVER_SILENT)
		send_reply(c, &reply, answer == SERVER_REPLY_WITH_STATE ? c->server->state_fd : -1);
}

static void client_died(void *arg, int events)
{
	(void)events;
	client_free(arg);
}

static int client_new(struct server *s, int fd, struct hm_err *e)
{
	struct client *c = calloc(1, sizeof *c);
	struct ucred who = { 0 };
	socklen_t n = sizeof who;
	int r;

	if (c == NULL) {
		close(fd);
		return hm_err_set(e, HM_ENOMEM, "client");
	}
	*c = (struct client) { .server = s, .fd = fd, .pid_fd = -1, .process = NO_PROCESS };
	link_append(&s->clients, &c->on);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0) {
		c->pid = (uint32_t)who.pid;
		c->uid = who.uid;
	}
	if (who.pid > 0)
		c->pid_fd = (int)syscall(SYS_pidfd_open, who.pid, 0);
	r = loop_fd_new(s->loop, fd, LOOP_READ, client_ready, c, &c->watch, e);
	if (r == 0 && c->pid_fd >= 0)
		r = loop_fd_new(s->loop, c->pid_fd, LOOP_READ, client_died, c, &c->pid_watch, e);
	if (r < 0)
		client_free(c);
	return r;
}

static void accept_ready(void *arg, int events)
{
	struct server *s = arg;
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct hm_err e;

	(void)events;
	if (fd >= 0 && client_new(s, fd, &e) < 0)
		log_warn("cannot serve a client", KV_ERR(&e));
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) &&
	    loop_fd_set(s->listener, 0) == 0)
		loop_timer_arm(s->resume, ACCEPT_PAUSE_MS);
}

static void accept_again(void *arg)
{
	struct server *s = arg;

	if (loop_fd_set(s->listener, LOOP_READ) < 0)
		loop_timer_arm(s->resume, ACCEPT_PAUSE_MS);
}

/* ---- Start and stop */

int server_listen(struct server *s, struct hm_err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	hm_auto_fd fd = -1;
	int other;

	if (hm_fmt(a.sun_path, sizeof a.sun_path, "%s/%s", s->dir, SIM_SOCKET) >= sizeof a.sun_path)
		return hm_err_set(e, HM_EINVAL, "%s: longer than a socket's path may be (%zu bytes)", s->dir,
				  sizeof a.sun_path - sizeof SIM_SOCKET - 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return hm_err_errno(e, errno, "socket");
	other = connect(fd, (struct sockaddr *)&a, sizeof a);
	if (other == 0)
		return hm_err_set(e, HM_EEXIST, "a simulated node is up in %s already", s->dir);
	unlink(a.sun_path);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || chmod(a.sun_path, 0666) < 0 || listen(fd, 1024) < 0)
		return hm_err_errno(e, errno, "%s", a.sun_path);
	s->listen_fd = hm_steal_fd(&fd);
	return 0;
}

static void tick(void *arg)
{
	struct server *s = arg;

	server_sync(s);
	loop_timer_arm(s->tick, TICK_MS);
}

static void grace_over(void *arg)
{
	clock_grace_over(arg);
}

static void driver_back(void *arg)
{
	struct server *s = arg;

	atomic_store(&s->node->loaded, 1);
	log_info("driver loaded", KV_U64("generation", atomic_load(&s->node->generation)));
}

int server_start(struct server *s, struct hm_err *e)
{
	int r;

	list_init(&s->clients);
	list_init(&s->waits);
	if ((r = loop_fd_new(s->loop, s->listen_fd, LOOP_READ, accept_ready, s, &s->listener, e)) < 0 ||
	    (r = loop_timer_new(s->loop, tick, s, &s->tick, e)) < 0 ||
	    (r = loop_timer_new(s->loop, grace_over, s, &s->grace, e)) < 0 ||
	    (r = loop_timer_new(s->loop, driver_back, s, &s->reload, e)) < 0 ||
	    (r = loop_timer_new(s->loop, accept_again, s, &s->resume, e)) < 0)
		return r;
	if (s->node->clock == SIM_CLOCK_WALL)
		loop_timer_arm(s->tick, TICK_MS);
	return 0;
}

void server_stop(struct server *s)
{
	atomic_store(&s->node->loaded, 0);
	atomic_fetch_add(&s->node->generation, 1);
	LIST_FOR_EACH (&s->clients, l)
		client_free(HM_CONTAINER(l, struct client, on));
	loop_timer_free(s->tick);
	loop_timer_free(s->grace);
	loop_timer_free(s->reload);
	loop_timer_free(s->resume);
	loop_fd_free(s->listener);
}
