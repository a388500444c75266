/* The answer to one HTTP/1.x request, bytes in and bytes out: http_server.h without its sockets. */
#ifndef HM_IO_HTTP_ANSWER_H
#define HM_IO_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { HTTP_MAX_REQUEST_BYTES = 16384 /* request line and headers */ };

/* The words behind a status in an answer's first line; of one that is not known here those of 500. */
const char *http_reason(int status);

/* A page that is too long to be made at once: its parts are made while they are read. */
struct http_parts {
	void *(*begin)(void *arg);                 /* NULL: 503 */
	bool (*add)(void *page, struct str *body); /* the next part, of any length; false: there is none any more */
	void (*end)(void *page);
};

struct http_page {
	const char *path;                        /* "/healthz"; a query behind it is ignored */
	int (*get)(void *arg, struct str *body); /* appends the body (text/plain) and returns the status, 200 or 503 */
	const struct http_parts *parts;          /* instead of `get` */
};

/* What of an answer is still to be made. */
struct http_rest {
	const struct http_parts *parts; /* NULL: nothing */
	void *page;
	bool chunked;
};

/* False while more bytes are wanted. Else the request is answered, whatever it was: head and body are appended to *out
 * (str_failed where memory is short), but for what *rest is about. `in` is all that came so far. */
bool http_answer(const struct http_page *pages, size_t count, void *arg, const char *in, size_t n, struct str *out,
		 struct http_rest *rest);

/* Appends the next part; after the last one the rest is nothing. */
void http_rest_add(struct http_rest *r, struct str *out);
void http_rest_end(struct http_rest *r); /* harmless where it is nothing */

#endif
