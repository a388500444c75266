#include "rpc/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rpc/limits.h"

enum { IO_BYTES = 65536 };

struct rpc_peer {
	struct link link;
	struct rpc_peer_owner owner;
	struct loop *loop;
	int fd;
	struct rpc_conn *conn;
	struct loop_fd *watch;
	int events; /* that watch waits for */
	struct loop_timer *timer;
	uint64_t armed_ms; /* UINT64_MAX: disarmed */
	uint8_t *pending;  /* pulled, not yet taken by the socket */
	size_t pending_n, pending_at;
	bool busy;   /* the engine is running: user code may be on the stack */
	bool doomed; /* freed by its owner while busy */
	bool over;   /* the socket or the engine ended */
};

struct rpc_peer *rpc_peer_of(struct link *on_list)
{
	return HM_CONTAINER(on_list, struct rpc_peer, link);
}

struct rpc_conn *rpc_peer_conn(struct rpc_peer *p)
{
	return p->conn;
}

static void destroy(struct rpc_peer *p)
{
	link_remove(&p->link);
	loop_timer_free(p->timer);
	loop_fd_free(p->watch);
	rpc_conn_free(p->conn);
	close(p->fd);
	free(p->pending);
	free(p);
}

/* ---- writing ---- */

static void watch(struct rpc_peer *p, int events)
{
	if (p->events == events)
		return;
	p->events = events;
	if (loop_fd_set(p->watch, events) < 0)
		p->over = true;
}

/* The socket took k of n bytes: the rest waits until it is writable. */
static void keep(struct rpc_peer *p, const uint8_t *bytes, size_t n)
{
	p->pending = malloc(n);
	if (p->pending == NULL) {
		p->over = true;
		return;
	}
	memcpy(p->pending, bytes, n);
	p->pending_n = n;
	p->pending_at = 0;
}

/* Bytes that the socket took; 0 when it is full or broken (p->over). */
static size_t write_some(struct rpc_peer *p, const uint8_t *bytes, size_t n)
{
	ssize_t k;

	do
		k = send(p->fd, bytes, n, MSG_NOSIGNAL);
	while (k < 0 && errno == EINTR);
	if (k >= 0)
		return (size_t)k;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		p->over = true;
	return 0;
}

static bool write_pending(struct rpc_peer *p)
{
	while (p->pending != NULL) {
		size_t k = write_some(p, p->pending + p->pending_at, p->pending_n - p->pending_at);

		if (k == 0)
			return false;
		p->pending_at += k;
		if (p->pending_at == p->pending_n) {
			free(p->pending);
			p->pending = NULL;
		}
	}
	return true;
}

/* Nothing is pulled while the socket is full: what the peer does not read stays in the engine, where it is bounded. */
static void flush(struct rpc_peer *p)
{
	uint8_t buf[IO_BYTES];
	size_t n;

	if (!write_pending(p)) {
		watch(p, LOOP_READ | LOOP_WRITE);
		return;
	}
	while (!p->over && (n = rpc_conn_pull(p->conn, buf, sizeof buf)) > 0) {
		size_t at = 0, k;

		do {
			k = write_some(p, buf + at, n - at);
			at += k;
		} while (k > 0 && at < n);
		if (at < n) {
			keep(p, buf + at, n - at);
			watch(p, LOOP_READ | LOOP_WRITE);
			return;
		}
	}
	watch(p, LOOP_READ);
	if (rpc_conn_is_over(p->conn))
		p->over = true;
}

/* ---- events ---- */

static void arm(struct rpc_peer *p, uint64_t at_ms)
{
	uint64_t now = loop_now_ms(p->loop);

	if (at_ms >= p->armed_ms)
		return; /* the earlier one finds out */
	p->armed_ms = at_ms;
	loop_timer_arm(p->timer, at_ms > now ? at_ms - now : 0);
}

/* Out of the engine: now the peer itself may go. */
static void leave(struct rpc_peer *p)
{
	if (p->over && !p->doomed)
		rpc_conn_lost(p->conn);
	if (p->doomed && !p->over)
		flush(p);
	p->busy = false;
	if (p->doomed) {
		destroy(p);
	} else if (p->over) {
		if (p->owner.closed != NULL)
			p->owner.closed(p->owner.arg);
		destroy(p);
	} else {
		arm(p, rpc_conn_next_tick_ms(p->conn));
	}
}

static void read_some(struct rpc_peer *p)
{
	uint8_t buf[IO_BYTES];
	ssize_t n = recv(p->fd, buf, sizeof buf, 0);

	if (n > 0)
		p->over = rpc_conn_feed(p->conn, buf, (size_t)n, loop_now_ms(p->loop)) < 0;
	else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		p->over = true;
}

static void on_io(void *arg, int events)
{
	struct rpc_peer *p = arg;

	p->busy = true;
	if (events & LOOP_READ)
		read_some(p);
	if (!p->over && !p->doomed)
		flush(p);
	leave(p);
}

static void on_timer(void *arg)
{
	struct rpc_peer *p = arg;

	p->armed_ms = UINT64_MAX;
	p->busy = true;
	rpc_conn_tick(p->conn, loop_now_ms(p->loop));
	if (!p->over && !p->doomed)
		flush(p);
	leave(p);
}

/* Outside our events nothing is written at once: a call to the engine would then run callbacks in the middle of its
 * caller. The loop comes back before it waits. */
static void on_output(void *arg)
{
	struct rpc_peer *p = arg;

	if (!p->busy)
		arm(p, 0);
}

/* ---- life ---- */

int rpc_peer_new(struct loop *l, int fd, struct rpc_conn *conn, const struct rpc_peer_owner *owner,
		 struct rpc_peer **out, struct hm_err *e)
{
	struct rpc_peer *p = calloc(1, sizeof *p);

	if (p == NULL) {
		close(fd);
		rpc_conn_free(conn);
		return hm_err_set(e, HM_ENOMEM, "gRPC connection");
	}
	*p = (struct rpc_peer) {
		.owner = *owner, .loop = l, .fd = fd, .conn = conn, .events = LOOP_READ, .armed_ms = UINT64_MAX
	};
	if (loop_timer_new(l, on_timer, p, &p->timer, e) < 0 ||
	    loop_fd_new(l, fd, LOOP_READ, on_io, p, &p->watch, e) < 0) {
		destroy(p);
		return hm_err_wrap(e, "gRPC connection");
	}
	rpc_conn_on_output(conn, on_output, p);
	if (owner->list != NULL)
		link_append(owner->list, &p->link);
	p->busy = true;
	flush(p); /* our SETTINGS; no stream is open, so no callback runs */
	p->busy = false;
	arm(p, p->over ? 0 : rpc_conn_next_tick_ms(conn));
	*out = p;
	return 0;
}

void rpc_peer_free(struct rpc_peer *p)
{
	bool busy;

	if (p == NULL)
		return;
	busy = p->busy;
	p->busy = p->doomed = true;
	link_remove(&p->link);
	rpc_conn_close(p->conn);
	if (!busy)
		leave(p);
}
