/* A small HTTP/1.1 server in the one loop for pages that are read (GET, HEAD): health, later metrics. One request a
 * connection, plain TCP, bounded in size, time and number; a request body is not read. */
#ifndef HM_IO_HTTP_SERVER_H
#define HM_IO_HTTP_SERVER_H

#include "core/cleanup.h"
#include "core/err.h"
#include "io/http_answer.h"
#include "io/loop.h"

enum {
	HTTP_MAX_CONNECTIONS = 32,      /* beyond it the oldest is closed */
	HTTP_DEADLINE_MS = 5000,        /* from accept to the end, however busy the peer is */
	HTTP_PARTS_DEADLINE_MS = 30000, /* of a page that is made in parts, a part in each turn of the loop */
};

struct http_server;

/* address: "127.0.0.1:8080", ":8080" (every address), "[::1]:8080"; port 0: any free one. `pages` is borrowed.
 * -HM_EINVAL for an address that is none, -HM_EIO and others where it cannot be bound. */
int http_server_new(struct loop *l, const char *address, const struct http_page *pages, size_t count, void *arg,
		    struct http_server **out, struct hm_err *e) HM_MUST_USE;
void http_server_free(struct http_server *s);
HM_DEFINE_AUTO(http_server, http_server_free);

unsigned http_server_port(const struct http_server *s);

#endif
