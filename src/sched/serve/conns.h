/* The connections of an evhttp server, bounded in number, time and memory, which evhttp 2.1 does not do. evhttp makes
 * and ends them; here each is known from accept to end, with the phase that it is in:
 *
 *   HEAD      from accept or a request's first byte; until the header's blank line   header_ms
 *   BODY      until the request is whole                                              body_ms
 *   HANDLING  until it is answered: the server's own time                             -
 *   WRITING   until the peer has taken the answer                                     write_ms
 *   WAITING   for the next request                                                    idle_ms
 *
 * Deadlines are of the whole phase, however busy the peer is. Where there are too many connections, or their bodies and
 * answers hold too much memory, some are closed: of the longest idle, or those that hold most. */
#ifndef HM_SCHED_SERVE_CONNS_H
#define HM_SCHED_SERVE_CONNS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/tcp_listen.h"

struct bufferevent;
struct evhttp_connection;
struct conn;
struct conns;

struct conns_limits {
	uint64_t header_ms, body_ms, write_ms, idle_ms;
	size_t connections;
	size_t held_bytes; /* of all bodies and answers together */
};

enum conn_phase { CONN_HEAD, CONN_BODY, CONN_HANDLING, CONN_WRITING, CONN_WAITING, CONN_PHASE_COUNT };

enum conn_drop {
	DROP_HEADER, /* a deadline passed */
	DROP_BODY,
	DROP_WRITE,
	DROP_IDLE,
	DROP_ROOM,   /* too many connections */
	DROP_MEMORY, /* too much held */
	DROP_TLS,    /* no memory for TLS */
	DROP_COUNT
};
const char *conn_drop_name(enum conn_drop d);

struct conns_stats {
	size_t open;
	size_t held_bytes;
	uint64_t accepted, dropped[DROP_COUNT];
};

/* `closed`: a connection ended; what conn_set_data hung on it is void. */
int conns_new(struct loop *l, const struct conns_limits *limits, void (*closed)(void *arg, void *data), void *arg,
	      struct conns **out, struct hm_err *e) HM_MUST_USE;
/* After the evhttp that held them. */
void conns_free(struct conns *s);
HM_DEFINE_AUTO(conns, conns_free);

/* For evhttp_set_bevcb: a connection was accepted. NULL where memory is short. */
struct bufferevent *conns_open(struct conns *s, SSL_CTX *ctx);

/* What waits to be done with connections that were just accepted, or are to be closed: before evhttp is freed. */
void conns_attend(struct conns *s);

/* NULL: none of ours, or one that is about to be closed. */
struct conn *conns_find(const struct conns *s, struct evhttp_connection *evcon);

/* A request is whole; it was answered by so many bytes; those were taken. */
void conn_handling(struct conn *c, void *data);
void conn_writing(struct conn *c, size_t bytes);
void conn_waiting(struct conn *c);

SSL *conn_ssl(const struct conn *c);      /* NULL: plain */
bool conn_is_local(const struct conn *c); /* from this machine */
void conn_peer(const struct conn *c, char out[TCP_PEER_BYTES]);

/* Ends those that wait, and those that have said nothing yet. */
void conns_close_idle(struct conns *s);

const struct conns_stats *conns_stats(const struct conns *s);

#endif
