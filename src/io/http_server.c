#include "io/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "core/link.h"
#include "io/tcp_listen.h"

enum { SWEEP_MS = 500, BACKLOG = 64, ACCEPT_PAUSE_MS = 100 };

struct http_server {
	struct loop *loop;
	const struct http_page *pages;
	size_t page_count;
	void *arg;
	int fd;
	struct loop_fd *ready;
	struct loop_timer *sweep, *resume;
	struct link connections; /* oldest first */
	size_t connection_count;
};

/* READING until the blank line, WRITING the answer, DRAINING until the peer closes: closing at once with unread input
 * would reset the connection and could lose the answer. */
enum state { READING, WRITING, DRAINING };

struct connection {
	struct link link;
	struct http_server *server;
	enum state state;
	int fd;
	struct loop_fd *ready;
	uint64_t since_ms;
	struct str in, out;
	size_t sent;
	struct http_rest rest; /* of a page in parts, behind `out` */
	uint32_t deadline_ms;
};

static void connection_free(struct connection *c)
{
	link_remove(&c->link);
	c->server->connection_count--;
	loop_fd_free(c->ready);
	close(c->fd);
	http_rest_end(&c->rest);
	str_fini(&c->in);
	str_fini(&c->out);
	free(c);
}

/* True while the connection may go on. */
static bool read_some(struct connection *c)
{
	char buf[4096];
	ssize_t n = recv(c->fd, buf, sizeof buf, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	if (c->state != READING)
		return true;
	str_add_n(&c->in, buf, (size_t)n);
	if (str_failed(&c->in))
		return false;
	if (http_answer(c->server->pages, c->server->page_count, c->server->arg, c->in.p, c->in.n, &c->out, &c->rest))
		c->state = WRITING;
	if (c->rest.parts != NULL)
		c->deadline_ms = HTTP_PARTS_DEADLINE_MS;
	return true;
}

static bool write_some(struct connection *c)
{
	ssize_t n;

	if (str_failed(&c->out))
		return false;
	n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->sent += (size_t)n;
	if (c->sent < c->out.n)
		return true;
	str_clear(&c->out);
	c->sent = 0;
	if (c->rest.parts != NULL) {
		http_rest_add(&c->rest, &c->out);
	} else {
		shutdown(c->fd, SHUT_WR);
		c->state = DRAINING;
	}
	return true;
}

static void on_connection(void *arg, int events)
{
	struct connection *c = arg;
	bool ok = true;

	if (events & LOOP_READ)
		ok = read_some(c);
	if (ok && c->state == WRITING)
		ok = write_some(c);
	if (ok && loop_fd_set(c->ready, c->state == WRITING ? LOOP_READ | LOOP_WRITE : LOOP_READ) < 0)
		ok = false;
	if (!ok)
		connection_free(c);
}

static void on_sweep(void *arg)
{
	struct http_server *s = arg;
	uint64_t now = loop_now_ms(s->loop);

	LIST_FOR_EACH (&s->connections, it) {
		struct connection *c = HM_CONTAINER(it, struct connection, link);

		if (now - c->since_ms >= c->deadline_ms)
			connection_free(c);
	}
	if (!list_empty(&s->connections))
		loop_timer_arm(s->sweep, SWEEP_MS);
}

static void take(struct http_server *s, int fd)
{
	struct connection *c = calloc(1, sizeof *c);
	struct hm_err e;
	int on = 1;

	if (c == NULL) {
		close(fd);
		return;
	}
	if (s->connection_count == HTTP_MAX_CONNECTIONS)
		connection_free(HM_CONTAINER(list_first(&s->connections), struct connection, link));
	*c = (struct connection) {
		.server = s, .fd = fd, .since_ms = loop_now_ms(s->loop), .deadline_ms = HTTP_DEADLINE_MS
	};
	link_append(&s->connections, &c->link);
	s->connection_count++;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (loop_fd_new(s->loop, fd, LOOP_READ, on_connection, c, &c->ready, &e) < 0)
		connection_free(c);
	else if (s->connection_count == 1) /* armed once: newcomers must not put it off */
		loop_timer_arm(s->sweep, SWEEP_MS);
}

/* A listening socket stays readable while we cannot accept, so waiting for it would spin. */
static void pause_accepting(struct http_server *s)
{
	if (loop_fd_set(s->ready, 0) == 0)
		loop_timer_arm(s->resume, ACCEPT_PAUSE_MS);
}

static void on_resume(void *arg)
{
	struct http_server *s = arg;

	if (loop_fd_set(s->ready, LOOP_READ) < 0)
		loop_timer_arm(s->resume, ACCEPT_PAUSE_MS);
}

static void on_accept(void *arg, int events)
{
	struct http_server *s = arg;

	(void)events;
	for (int n = 0; n < BACKLOG; n++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take(s, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			pause_accepting(s);
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

int http_server_new(struct loop *l, const char *address, const struct http_page *pages, size_t count, void *arg,
		    struct http_server **out, struct hm_err *e)
{
	hm_auto(http_server) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "HTTP server");
	*s = (struct http_server) { .loop = l, .pages = pages, .page_count = count, .arg = arg, .fd = -1 };
	list_init(&s->connections);
	if (tcp_listen(address, BACKLOG, &s->fd, e) < 0 || loop_timer_new(l, on_sweep, s, &s->sweep, e) < 0 ||
	    loop_timer_new(l, on_resume, s, &s->resume, e) < 0 ||
	    loop_fd_new(l, s->fd, LOOP_READ, on_accept, s, &s->ready, e) < 0)
		return hm_err_wrap(e, "HTTP server");
	*out = HM_STEAL(s);
	return 0;
}

void http_server_free(struct http_server *s)
{
	if (s == NULL)
		return;
	while (!list_empty(&s->connections))
		connection_free(HM_CONTAINER(list_first(&s->connections), struct connection, link));
	loop_fd_free(s->ready);
	loop_timer_free(s->sweep);
	loop_timer_free(s->resume);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

unsigned http_server_port(const struct http_server *s)
{
	return tcp_port(s->fd);
}
