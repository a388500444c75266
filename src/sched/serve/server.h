/* The HTTP(S) server of the extender and the webhook: evhttp in the one loop, with what it lacks (conns.h, secrets.h).
 * A request is handed over whole and answered once, at once or later. Wrong methods, unknown paths and the slash too
 * many are answered as HAMi's server does. */
#ifndef HM_SCHED_SERVE_SERVER_H
#define HM_SCHED_SERVE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/latency.h"
#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "sched/serve/conns.h"
#include "sched/serve/secrets.h"

enum {
	SERVER_MAX_HEAD_BYTES = 16384,
	SERVER_MAX_BODY_BYTES = 64 << 20,
	SERVER_MAX_HELD_BYTES = 160 << 20,
	SERVER_MAX_ROUTES = 16,
};

struct server;
struct server_request;

/* Where clients must show something (secrets.h) all but the first kind are answered to those alone who did. */
enum server_guard {
	SERVER_OPEN,
	SERVER_GUARDED, /* nothing is wanted: to everybody */
	SERVER_LOCAL,   /* nothing is wanted: to who asks from this machine */
};

/* Bodies above max_bytes (0: SERVER_MAX_BODY_BYTES) are answered 413. */
struct server_route {
	const char *method, *path;
	enum server_guard guard;
	size_t max_bytes;
	void (*handle)(void *arg, struct server_request *r);
	void *arg;
};

struct server_config {
	const char *address; /* io/tcp_listen.h */
	const struct server_route *routes;
	size_t route_count;
	const struct secrets *secrets;
	struct conns_limits limits;
};

/* All in it is borrowed. */
int server_new(struct loop *l, const struct server_config *config, struct server **out, struct hm_err *e) HM_MUST_USE;
/* Requests that are not answered end with it: whoever holds one must not touch it any more. */
void server_free(struct server *s);
HM_DEFINE_AUTO(server, server_free);

/* We are about to end: each answer says that it is its connection's last. */
void server_part(struct server *s);
/* No new connections; those in use end with their answers, the others now. `stopped` comes, once, when none is left. */
void server_stop(struct server *s, void (*stopped)(void *arg), void *arg);

unsigned server_port(const struct server *s);

/* The body, whole; the handler may write into it. Good until handle() returns or the request is answered. NULL and 0
 * where there is none. */
char *server_body(struct server_request *r, size_t *n);
const char *server_header(const struct server_request *r, const char *name); /* NULL where absent */

#define SERVER_JSON "application/json"
#define SERVER_TEXT "text/plain; charset=utf-8"

/* The request is gone by then. *take_body moves in and is empty then; where it failed, 500 is answered. */
void server_answer(struct server_request *r, int status, const char *content_type, struct str *take_body);
void server_answer_text(struct server_request *r, int status, const char *text);

struct server_route_stats {
	uint64_t by_class[6]; /* [2]: statuses 200 to 299 */
	struct latency latency;
	size_t in_hand;
};
struct server_stats {
	struct server_route_stats routes[SERVER_MAX_ROUTES]; /* as the configuration has them */
	uint64_t not_admitted, unknown;                      /* 401; 404, 405 and the like */
};
const struct server_stats *server_stats(const struct server *s);
const struct conns_stats *server_conns_stats(const struct server *s);

#endif
