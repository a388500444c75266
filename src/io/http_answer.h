/* The answer to one HTTP/1.x request, bytes in and bytes out: http_server.h without its sockets. */
#ifndef HM_IO_HTTP_ANSWER_H
#define HM_IO_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { HTTP_MAX_REQUEST_BYTES = 16384 /* request line and headers */ };

/* The words behind a status in an answer's first line; of one that is not known here those of 500. */
const char *http_reason(int status);

/* One page: appends the body (text/plain) and returns the status, 200 or 503. */
struct http_page {
	const char *path; /* "/healthz"; a query behind it is ignored */
	int (*get)(void *arg, struct str *body);
};

/* False while more bytes are wanted. Else the request is answered, whatever it was: head and body are appended to *out
 * (str_failed where memory is short). `in` is all that came so far. */
bool http_answer(const struct http_page *pages, size_t count, void *arg, const char *in, size_t n, struct str *out);

#endif
