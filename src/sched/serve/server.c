#include "sched/serve/server.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <string.h>

#include "base/log.h"
#include "core/check.h"
#include "core/link.h"
#include "io/http_answer.h"
#include "io/tcp_listen.h"

enum { BACKLOG = 512, TICK_MS = 1000, STOP_POLL_MS = 10, TELL_MS = 3600 * 1000 };

struct server {
	struct loop *loop;
	struct server_route routes[SERVER_MAX_ROUTES];
	size_t route_count;
	const struct secrets *secrets;
	struct conns *conns;
	struct evhttp *http;
	struct evhttp_bound_socket *bound; /* NULL: stopped */
	struct loop_timer *tick;
	struct link requests;
	struct server_request *in_hand; /* whose handle() is on the stack and has not answered */
	unsigned port;
	bool parting;
	void (*stopped)(void *arg); /* NULL: it serves on, or was told of the end */
	void *stopped_arg;
	uint64_t told_ms; /* when the log last named somebody who was not admitted; 0: never */
	struct server_stats stats;
};

struct server_request {
	struct link link;
	struct server *server;
	struct conn *conn;
	struct evhttp_request *ev; /* NULL: its connection is gone, and it with it */
	size_t route;
	uint64_t since_us;
};

/* ---- answers */

static void free_body(const void *bytes, size_t n, void *text)
{
	(void)bytes, (void)n;
	free(text);
}

static void on_taken(struct evhttp_request *ev, void *arg)
{
	(void)ev;
	conn_waiting(arg);
}

/* conn: NULL where it is about to be closed. */
static void send_answer(const struct server *s, struct evhttp_request *ev, struct conn *conn, int status,
			const char *content_type, struct str *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(ev);
	struct evbuffer *buf = evbuffer_new();
	size_t n = body->n;

	evhttp_add_header(headers, "Content-Type", content_type);
	if (s->parting || conn == NULL)
		evhttp_add_header(headers, "Connection", "close");
	if (buf == NULL || str_failed(body)) {
		status = 500;
		n = 0;
	} else if (evhttp_request_get_command(ev) == EVHTTP_REQ_HEAD) {
		n = 0; /* evhttp would send it */
	} else if (n > 0 && evbuffer_add_reference(buf, body->p, n, free_body, body->p) == 0) {
		*body = (struct str) { 0 };
	}
	if (conn != NULL) {
		conn_writing(conn, n);
		evhttp_request_set_on_complete_cb(ev, on_taken, conn);
	}
	evhttp_send_reply(ev, status, http_reason(status), buf);
	if (buf != NULL)
		evbuffer_free(buf);
}

static void request_free(struct server_request *r)
{
	struct server *s = r->server;

	if (s->in_hand == r)
		s->in_hand = NULL;
	s->stats.routes[r->route].in_hand--;
	link_remove(&r->link);
	free(r);
}

void server_answer(struct server_request *r, int status, const char *content_type, struct str *take_body)
{
	struct server *s = r->server;
	struct server_route_stats *stats = &s->stats.routes[r->route];
	uint64_t us = loop_now_us(s->loop) - r->since_us;
	hm_auto_str body = *take_body;

	*take_body = (struct str) { 0 };
	stats->by_class[HM_MIN(status / 100, 5)]++;
	latency_note(&stats->latency, us);
	log_v(5, "answered", KV("path", s->routes[r->route].path), KV_U64("status", status), KV_U64("us", us),
	      KV_U64("bytes", body.n));
	if (r->ev != NULL)
		send_answer(s, r->ev, r->conn, status, content_type, &body);
	request_free(r);
}

void server_answer_text(struct server_request *r, int status, const char *text)
{
	struct str body = { 0 };

	str_add(&body, text);
	server_answer(r, status, SERVER_TEXT, &body);
}

/* ---- requests */

static const char *method_name(enum evhttp_cmd_type type)
{
	switch (type) {
	case EVHTTP_REQ_GET: return "GET";
	case EVHTTP_REQ_POST: return "POST";
	case EVHTTP_REQ_OPTIONS: return "OPTIONS";
	default: return "another"; /* that no route has */
	}
}

static bool same_path(const char *path, size_t n, const char *route)
{
	return strncmp(path, route, n) == 0 && route[n] == '\0';
}

/* The route of path and method; route_count: none. *allowed gets the path's methods, as HAMi's server lists them. */
static size_t find_route(const struct server *s, const char *path, size_t n, const char *method, struct str *allowed)
{
	size_t found = s->route_count;

	for (size_t i = 0; i < s->route_count; i++) {
		if (!same_path(path, n, s->routes[i].path))
			continue;
		if (strcmp(s->routes[i].method, method) == 0)
			found = i;
		str_add(allowed, strcmp(s->routes[i].method, "GET") == 0 ? "GET, OPTIONS" : "OPTIONS, POST");
	}
	return found;
}

/* No route: 404, 405 with the methods that there are, or the same path without the slash at its end. */
static void answer_lost(struct server *s, struct evhttp_request *ev, struct conn *conn, const char *path,
			const char *method, const struct str *allowed)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(ev);
	size_t n = strlen(path);
	hm_auto_str body = { 0 }, other = { 0 };
	int status = 404;

	s->stats.unknown++;
	if (allowed->n > 0) {
		status = strcmp(method, "OPTIONS") == 0 ? 200 : 405;
		evhttp_add_header(headers, "Allow", str_text(allowed));
		str_add(&body, status == 405 ? "Method Not Allowed\n" : "");
	} else if (n > 1 && path[n - 1] == '/' && find_route(s, path, n - 1, method, &other) < s->route_count) {
		hm_auto_str to = { 0 };

		status = strcmp(method, "GET") == 0 ? 301 : 308;
		str_add_n(&to, path, n - 1);
		evhttp_add_header(headers, "Location", str_text(&to));
	} else {
		str_add(&body, "404 page not found\n");
	}
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	conn_handling(conn, NULL);
	send_answer(s, ev, conn, status, SERVER_TEXT, &body);
}

static void refuse(struct server *s, struct evhttp_request *ev, struct conn *conn, int status, const char *text)
{
	hm_auto_str body = { 0 };

	str_add(&body, text);
	conn_handling(conn, NULL);
	send_answer(s, ev, conn, status, SERVER_TEXT, &body);
}

static bool may_ask(const struct server *s, enum server_guard guard, const struct conn *conn, const char *authorization)
{
	if (guard != SERVER_OPEN && secrets_wanted(s->secrets))
		return secrets_admit(s->secrets, conn_ssl(conn), authorization);
	return guard != SERVER_LOCAL || conn_is_local(conn);
}

static void warn_of_asker(struct server *s, const struct conn *conn, const char *path)
{
	uint64_t now_ms = loop_now_ms(s->loop);
	char peer[TCP_PEER_BYTES];

	if (s->told_ms != 0 && now_ms - s->told_ms < TELL_MS)
		return;
	s->told_ms = now_ms;
	conn_peer(conn, peer);
	log_warn(secrets_wanted(s->secrets) ? "who asks shows no certificate of --client-ca-file and not the token of "
					      "--token-file: 401"
					    : "who asks is not on this machine: 401; others may with --client-ca-file, "
					      "--token-file or --extender-clients=any",
		 KV("path", path), KV("peer", peer), KV_U64("refused", s->stats.not_admitted));
}

/* The next connection may show a certificate of the authorities that are in force by then. */
static void refuse_asker(struct server *s, struct evhttp_request *ev, struct conn *conn, const char *path)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(ev);

	s->stats.not_admitted++;
	warn_of_asker(s, conn, path);
	evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
	evhttp_add_header(headers, "Connection", "close");
	refuse(s, ev, conn, 401,
	       secrets_wanted(s->secrets)
		       ? "a client certificate or a token is needed\n"
		       : "this is answered to kube-scheduler on the same machine or in the same pod; for "
			 "others see --client-ca-file, --token-file and --extender-clients\n");
}

static void hand_over(struct server *s, struct evhttp_request *ev, struct conn *conn, size_t route)
{
	struct server_request *r = calloc(1, sizeof *r);

	if (r == NULL) {
		evhttp_send_error(ev, 503, NULL);
		return;
	}
	*r = (struct server_request) {
		.server = s, .conn = conn, .ev = ev, .route = route, .since_us = loop_now_us(s->loop)
	};
	link_append(&s->requests, &r->link);
	s->stats.routes[route].in_hand++;
	conn_handling(conn, r);
	s->in_hand = r;
	s->routes[route].handle(s->routes[route].arg, r);
	if (s->in_hand == r) {
		struct evbuffer *body = evhttp_request_get_input_buffer(ev);

		s->in_hand = NULL;
		evbuffer_drain(body, evbuffer_get_length(body));
	}
}

static void on_request(struct evhttp_request *ev, void *arg)
{
	struct server *s = arg;
	struct conn *conn = conns_find(s->conns, evhttp_request_get_connection(ev));
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(ev);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	const char *method = method_name(evhttp_request_get_command(ev)), *authorization;
	hm_auto_str allowed = { 0 };
	size_t route;

	if (conn == NULL) {
		evhttp_send_error(ev, 503, NULL);
		return;
	}
	path = path != NULL ? path : "";
	route = find_route(s, path, strlen(path), method, &allowed);
	authorization = evhttp_find_header(evhttp_request_get_input_headers(ev), "Authorization");
	if (route == s->route_count) {
		answer_lost(s, ev, conn, path, method, &allowed);
	} else if (!may_ask(s, s->routes[route].guard, conn, authorization)) {
		refuse_asker(s, ev, conn, s->routes[route].path);
	} else if (s->routes[route].max_bytes > 0 &&
		   evbuffer_get_length(evhttp_request_get_input_buffer(ev)) > s->routes[route].max_bytes) {
		refuse(s, ev, conn, 413, "the body is too large\n");
	} else {
		hand_over(s, ev, conn, route);
	}
}

char *server_body(struct server_request *r, size_t *n)
{
	struct evbuffer *body = r->ev != NULL ? evhttp_request_get_input_buffer(r->ev) : NULL;

	*n = body != NULL ? evbuffer_get_length(body) : 0;
	return *n > 0 ? (char *)evbuffer_pullup(body, -1) : NULL;
}

const char *server_header(const struct server_request *r, const char *name)
{
	return r->ev != NULL ? evhttp_find_header(evhttp_request_get_input_headers(r->ev), name) : NULL;
}

/* ---- connections */

static struct bufferevent *on_accept(struct event_base *base, void *arg)
{
	struct server *s = arg;

	(void)base;
	return conns_open(s->conns, secrets_context(s->secrets));
}

static void on_closed(void *arg, void *data)
{
	struct server_request *r = data;

	(void)arg;
	r->ev = NULL;
	r->conn = NULL;
}

/* No file descriptor is left: asking again at once would spin. The tick goes on. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	(void)arg;
	evconnlistener_disable(listener);
}

static void on_tick(void *arg)
{
	struct server *s = arg;

	if (s->bound != NULL)
		evconnlistener_enable(evhttp_bound_socket_get_listener(s->bound));
	if (s->stopped == NULL) {
		loop_timer_arm(s->tick, TICK_MS);
		return;
	}
	conns_close_idle(s->conns);
	if (conns_stats(s->conns)->open == 0)
		HM_STEAL(s->stopped)(s->stopped_arg);
	else
		loop_timer_arm(s->tick, STOP_POLL_MS);
}

/* ---- life */

static int open_http(struct server *s, const char *address, struct hm_err *e)
{
	hm_auto_fd fd = -1;

	s->http = evhttp_new(loop_base(s->loop));
	if (s->http == NULL)
		return hm_err_set(e, HM_ENOMEM, "HTTP server");
	evhttp_set_max_headers_size(s->http, SERVER_MAX_HEAD_BYTES);
	evhttp_set_max_body_size(s->http, SERVER_MAX_BODY_BYTES);
	evhttp_set_default_content_type(s->http, NULL);
	evhttp_set_allowed_methods(s->http, UINT16_MAX); /* so that on_request can say 405 */
	evhttp_set_gencb(s->http, on_request, s);
	evhttp_set_bevcb(s->http, on_accept, s);
	if (tcp_listen(address, BACKLOG, &fd, e) < 0)
		return hm_err_wrap(e, "HTTP server");
	s->port = tcp_port(fd);
	s->bound = evhttp_accept_socket_with_handle(s->http, fd);
	if (s->bound == NULL)
		return hm_err_set(e, HM_ENOMEM, "HTTP server");
	(void)hm_steal_fd(&fd);
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(s->bound), on_accept_error);
	return 0;
}

int server_new(struct loop *l, const struct server_config *config, struct server **out, struct hm_err *e)
{
	hm_auto(server) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "HTTP server");
	CHECK(config->route_count <= SERVER_MAX_ROUTES);
	*s = (struct server) { .loop = l, .secrets = config->secrets, .route_count = config->route_count };
	memcpy(s->routes, config->routes, config->route_count * sizeof *s->routes);
	list_init(&s->requests);
	if (conns_new(l, &config->limits, on_closed, s, &s->conns, e) < 0 || open_http(s, config->address, e) < 0 ||
	    loop_timer_new(l, on_tick, s, &s->tick, e) < 0)
		return -e->code;
	loop_timer_arm(s->tick, TICK_MS);
	*out = HM_STEAL(s);
	return 0;
}

void server_free(struct server *s)
{
	if (s == NULL)
		return;
	if (s->conns != NULL)
		conns_attend(s->conns);
	if (s->http != NULL)
		evhttp_free(s->http);
	while (!list_empty(&s->requests))
		request_free(HM_CONTAINER(list_first(&s->requests), struct server_request, link));
	conns_free(s->conns);
	loop_timer_free(s->tick);
	free(s);
}

void server_part(struct server *s)
{
	s->parting = true;
}

void server_stop(struct server *s, void (*stopped)(void *), void *arg)
{
	if (s->bound != NULL)
		evhttp_del_accept_socket(s->http, HM_STEAL(s->bound));
	server_part(s);
	s->stopped = stopped;
	s->stopped_arg = arg;
	conns_close_idle(s->conns);
	loop_timer_arm(s->tick, STOP_POLL_MS);
}

unsigned server_port(const struct server *s)
{
	return s->port;
}

const struct server_stats *server_stats(const struct server *s)
{
	return &s->stats;
}

const struct conns_stats *server_conns_stats(const struct server *s)
{
	return conns_stats(s->conns);
}
