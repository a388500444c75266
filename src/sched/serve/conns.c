#include "sched/serve/conns.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/log.h"
#include "core/check.h"
#include "core/link.h"
#include "sched/serve/head.h"

/* 2.1 tells nobody of a connection before its first request is whole, and 2.2 does (evhttp_set_newreqcb): then
 * conns_attend is not needed. It rests on one thing that 2.1's header does not say: evhttp gives itself, the
 * evhttp_connection, to the callbacks of the bufferevent that we make for it. */
_Static_assert(LIBEVENT_VERSION_NUMBER < 0x02020000, "libevent 2.2: use evhttp_set_newreqcb");

enum { MIN_SWEEP_MS = 10, MAX_SWEEP_MS = 1000 };

struct conn {
	struct link phase_link; /* the list of its phase, the longest in it first; or of those that are to be closed */
	struct link new_link;   /* until evhttp has made its part of it */
	struct conns *conns;
	struct bufferevent *bev;
	struct evhttp_connection *evcon;
	int fd; /* -1 until known */
	enum conn_phase phase;
	uint64_t since_ms;
	size_t held;
	void *data;
	struct head head;
	bool heard; /* a byte came */
	bool doomed;
};

struct conns {
	struct loop *loop;
	struct conns_limits limits;
	void (*closed)(void *arg, void *data);
	void *arg;
	struct link in[CONN_PHASE_COUNT], fresh, doomed;
	struct conn **by_fd;
	size_t by_fd_cap;
	struct event *attend;
	struct loop_timer *sweep;
	uint64_t sweep_ms;
	size_t doomed_count;
	struct conns_stats stats;
};

const char *conn_drop_name(enum conn_drop d)
{
	static const char *const names[DROP_COUNT] = {
		"header-timeout", "body-timeout", "write-timeout", "idle", "connections", "memory", "tls"
	};

	return names[d];
}

static void set_held(struct conn *c, size_t bytes)
{
	c->conns->stats.held_bytes += bytes - c->held;
	c->held = bytes;
}

static void enter(struct conn *c, enum conn_phase phase)
{
	c->phase = phase;
	c->since_ms = loop_now_ms(c->conns->loop);
	if (c->doomed)
		return;
	link_remove(&c->phase_link);
	link_append(&c->conns->in[phase], &c->phase_link);
}

static void conn_free(struct conn *c)
{
	struct conns *s = c->conns;

	link_remove(&c->phase_link);
	link_remove(&c->new_link);
	set_held(c, 0);
	s->stats.open--;
	s->doomed_count -= c->doomed;
	if (c->fd >= 0)
		s->by_fd[c->fd] = NULL;
	if (c->data != NULL)
		s->closed(s->arg, c->data);
	free(c);
}

/* Its end comes from conns_attend: nothing that evhttp has on the stack may go. */
static void doom(struct conn *c, enum conn_drop why)
{
	struct conns *s = c->conns;

	if (c->doomed)
		return;
	c->doomed = true;
	s->doomed_count++;
	s->stats.dropped[why]++;
	link_remove(&c->phase_link);
	link_append(&s->doomed, &c->phase_link);
	log_v(2, "a connection is closed", KV("why", conn_drop_name(why)), KV_U64("held_bytes", c->held));
	event_active(s->attend, EV_TIMEOUT, 1);
}

/* ---- bounds */

static struct conn *oldest(struct conns *s, enum conn_phase phase)
{
	struct link *l = list_first(&s->in[phase]);

	return l != NULL ? HM_CONTAINER(l, struct conn, phase_link) : NULL;
}

/* What is being handled is never closed; else the longest idle, then who takes longest to ask or to listen. */
static void make_room(struct conns *s)
{
	static const enum conn_phase order[] = { CONN_WAITING, CONN_HEAD, CONN_BODY, CONN_WRITING };

	for (size_t i = 0; i < HM_COUNT(order) && s->stats.open - s->doomed_count > s->limits.connections; i++) {
		struct conn *c = oldest(s, order[i]);

		if (c != NULL)
			doom(c, DROP_ROOM);
	}
}

/* Who holds most goes first: small requests are served whatever large ones there are. */
static void free_memory(struct conns *s)
{
	static const enum conn_phase holders[] = { CONN_HEAD, CONN_BODY, CONN_WRITING };
	struct conn *most = NULL;

	for (size_t i = 0; i < HM_COUNT(holders); i++) {
		LIST_FOR_EACH (&s->in[holders[i]], it) {
			struct conn *c = HM_CONTAINER(it, struct conn, phase_link);

			if (most == NULL || c->held > most->held)
				most = c;
		}
	}
	if (most == NULL)
		return;
	log_warn("requests hold too much memory; the largest is dropped", KV_U64("held_bytes", s->stats.held_bytes),
		 KV_U64("of_it", most->held));
	doom(most, DROP_MEMORY);
	/* Its memory goes with it, in this turn of the loop. */
	set_held(most, 0);
}

static void hold(struct conn *c, size_t bytes)
{
	set_held(c, c->held + bytes);
	if (c->conns->stats.held_bytes > c->conns->limits.held_bytes)
		free_memory(c->conns);
}

static void sweep_phase(struct conns *s, enum conn_phase phase, uint64_t limit_ms, enum conn_drop why)
{
	uint64_t now = loop_now_ms(s->loop);

	LIST_FOR_EACH (&s->in[phase], it) {
		struct conn *c = HM_CONTAINER(it, struct conn, phase_link);

		if (now - c->since_ms < limit_ms)
			break;
		doom(c, why);
	}
}

static void on_sweep(void *arg)
{
	struct conns *s = arg;

	sweep_phase(s, CONN_HEAD, s->limits.header_ms, DROP_HEADER);
	sweep_phase(s, CONN_BODY, s->limits.body_ms, DROP_BODY);
	sweep_phase(s, CONN_WRITING, s->limits.write_ms, DROP_WRITE);
	sweep_phase(s, CONN_WAITING, s->limits.idle_ms, DROP_IDLE);
	if (s->stats.open > 0)
		loop_timer_arm(s->sweep, s->sweep_ms);
}

/* ---- bytes coming in */

static void read_head(struct conn *c, struct evbuffer *buf, size_t n)
{
	size_t before = c->head.lines;
	bool ended = head_ends(&c->head, buf, n);

	hold(c, (c->head.lines - before) * HEAD_LINE_BYTES);
	if (ended)
		enter(c, CONN_BODY);
}

static void begin_head(struct conn *c)
{
	c->head = (struct head) { 0 };
	enter(c, CONN_HEAD);
}

static void on_input(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *arg)
{
	struct conn *c = arg;

	if (info->n_added == 0)
		return;
	c->heard = true;
	if (c->phase == CONN_WAITING)
		begin_head(c);
	if (c->phase == CONN_HEAD)
		read_head(c, buf, info->n_added);
	hold(c, info->n_added);
}

/* ---- from accept to end */

static void on_closed(struct evhttp_connection *evcon, void *arg)
{
	(void)evcon;
	conn_free(arg);
}

static void set_socket(int fd)
{
	int on = 1, idle_s = 20, every_s = 10, tries = 3;

	/* evhttp leaves Nagle's delay on: 44 ms an answer. A peer that vanished is found out in a minute. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
}

static bool make_slot(struct conns *s, size_t fd)
{
	size_t had = s->by_fd_cap;

	if (!array_reserve(&s->by_fd, &s->by_fd_cap, fd + 1, sizeof *s->by_fd))
		return false;
	memset(s->by_fd + had, 0, (s->by_fd_cap - had) * sizeof *s->by_fd);
	return true;
}

/* evhttp has its part now, unless it failed and let go of the bufferevent, which lives by our own reference then. */
static void settle(struct conn *c)
{
	struct conns *s = c->conns;
	struct bufferevent *bev = c->bev;
	void *evcon = NULL;
	int fd = bufferevent_getfd(bev);

	link_remove(&c->new_link);
	bufferevent_getcb(bev, NULL, NULL, NULL, &evcon);
	if (evcon == NULL || fd < 0 || !make_slot(s, (size_t)fd)) {
		conn_free(c);
		if (evcon != NULL)
			evhttp_connection_free(evcon);
	} else {
		CHECK(evhttp_connection_get_bufferevent(evcon) == bev);
		c->evcon = evcon;
		c->fd = fd;
		s->by_fd[fd] = c;
		evhttp_connection_set_closecb(evcon, on_closed, c);
		set_socket(fd);
	}
	bufferevent_decref(bev);
}

void conns_attend(struct conns *s)
{
	while (!list_empty(&s->fresh))
		settle(HM_CONTAINER(list_first(&s->fresh), struct conn, new_link));
	while (!list_empty(&s->doomed))
		evhttp_connection_free(HM_CONTAINER(list_first(&s->doomed), struct conn, phase_link)->evcon);
}

static void on_attend(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	conns_attend(arg);
}

static struct bufferevent *make_bufferevent(struct event_base *base, SSL_CTX *ctx, bool *plain)
{
	SSL *ssl = ctx != NULL ? SSL_new(ctx) : NULL;
	struct bufferevent *bev = NULL;

	*plain = ssl == NULL;
	if (ssl != NULL)
		bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (bev != NULL) {
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
		return bev;
	}
	SSL_free(ssl);
	*plain = true;
	return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
}

struct bufferevent *conns_open(struct conns *s, SSL_CTX *ctx)
{
	struct conn *c = calloc(1, sizeof *c);
	bool plain;

	if (c == NULL)
		return NULL;
	*c = (struct conn) { .conns = s, .fd = -1 };
	c->bev = make_bufferevent(loop_base(s->loop), ctx, &plain);
	if (c->bev == NULL || evbuffer_add_cb(bufferevent_get_input(c->bev), on_input, c) == NULL) {
		if (c->bev != NULL)
			bufferevent_free(c->bev);
		free(c);
		return NULL;
	}
	bufferevent_incref(c->bev);
	s->stats.open++;
	s->stats.accepted++;
	link_append(&s->fresh, &c->new_link);
	begin_head(c);
	/* Never in the clear on a port that speaks TLS. */
	if (ctx != NULL && plain)
		doom(c, DROP_TLS);
	make_room(s);
	event_active(s->attend, EV_TIMEOUT, 1);
	if (s->stats.open == 1)
		loop_timer_arm(s->sweep, s->sweep_ms);
	return c->bev;
}

struct conn *conns_find(const struct conns *s, struct evhttp_connection *evcon)
{
	int fd = evcon != NULL ? bufferevent_getfd(evhttp_connection_get_bufferevent(evcon)) : -1;
	struct conn *c = fd >= 0 && (size_t)fd < s->by_fd_cap ? s->by_fd[fd] : NULL;

	return c != NULL && c->evcon == evcon && !c->doomed ? c : NULL;
}

void conn_handling(struct conn *c, void *data)
{
	c->data = data;
	enter(c, CONN_HANDLING);
}

void conn_writing(struct conn *c, size_t bytes)
{
	c->data = NULL;
	enter(c, CONN_WRITING);
	set_held(c, evbuffer_get_length(bufferevent_get_input(c->bev)));
	hold(c, bytes);
}

void conn_waiting(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	size_t n = evbuffer_get_length(in);

	set_held(c, n);
	if (n == 0) {
		enter(c, CONN_WAITING);
		return;
	}
	begin_head(c);
	read_head(c, in, n);
}

SSL *conn_ssl(const struct conn *c)
{
	return bufferevent_openssl_get_ssl(c->bev);
}

bool conn_is_local(const struct conn *c)
{
	return tcp_peer_is_local(c->fd);
}

void conn_peer(const struct conn *c, char out[TCP_PEER_BYTES])
{
	tcp_peer_text(c->fd, out);
}

void conns_close_idle(struct conns *s)
{
	LIST_FOR_EACH (&s->in[CONN_WAITING], it)
		doom(HM_CONTAINER(it, struct conn, phase_link), DROP_IDLE);
	LIST_FOR_EACH (&s->in[CONN_HEAD], it) {
		struct conn *c = HM_CONTAINER(it, struct conn, phase_link);

		if (!c->heard)
			doom(c, DROP_IDLE);
	}
}

const struct conns_stats *conns_stats(const struct conns *s)
{
	return &s->stats;
}

/* Deadlines are kept to an eighth. */
static uint64_t sweep_of(const struct conns_limits *l)
{
	const uint64_t all[] = { l->header_ms, l->body_ms, l->write_ms, l->idle_ms };
	uint64_t ms = MAX_SWEEP_MS;

	for (size_t i = 0; i < HM_COUNT(all); i++)
		ms = HM_MIN(ms, all[i] / 8);
	return HM_MAX(ms, (uint64_t)MIN_SWEEP_MS);
}

int conns_new(struct loop *l, const struct conns_limits *limits, void (*closed)(void *, void *), void *arg,
	      struct conns **out, struct hm_err *e)
{
	hm_auto(conns) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "connections");
	*s = (struct conns) { .loop = l, .limits = *limits, .closed = closed, .arg = arg };
	for (size_t i = 0; i < HM_COUNT(s->in); i++)
		list_init(&s->in[i]);
	list_init(&s->fresh);
	list_init(&s->doomed);
	s->sweep_ms = sweep_of(limits);
	s->attend = event_new(loop_base(l), -1, 0, on_attend, s);
	if (s->attend == NULL)
		return hm_err_set(e, HM_ENOMEM, "connections");
	if (loop_timer_new(l, on_sweep, s, &s->sweep, e) < 0)
		return -e->code;
	*out = HM_STEAL(s);
	return 0;
}

void conns_free(struct conns *s)
{
	if (s == NULL)
		return;
	CHECK(s->stats.open == 0);
	if (s->attend != NULL)
		event_free(s->attend);
	loop_timer_free(s->sweep);
	free(s->by_fd);
	free(s);
}
