/* Where the header of an HTTP request ends, seen as its bytes come: evhttp tells of it only when the body has come,
 * too.
 */
#ifndef HM_SCHED_SERVE_HEAD_H
#define HM_SCHED_SERVE_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct evbuffer;

/* What evhttp makes of a line beside its bytes: a pair of allocated texts in a list, with what the
 * allocator needs. */
enum { HEAD_LINE_BYTES = 160 };

/* { 0 } before a request's first byte. */
struct head {
	bool line_ended; /* the last byte so far ended a line */
	size_t lines;
};

/* The last n bytes of the buffer are new. True where the header ends in them; what is behind that is not looked at. */
bool head_ends(struct head *h, struct evbuffer *buf, size_t n);

#endif
