/* One pass over a JSON text, in place and without a tree: for bodies of megabytes of which little is wanted. Strict
 * grammar (RFC 8259), nesting bounded. As with core/cursor.h failure is sticky: after it every read says "no more", and
 * the caller checks once.
 *
 *     if (json_scan_object(&s))
 *         while (json_scan_member(&s, &key))
 *             if (strcmp(key, "names") == 0 && json_scan_array(&s))
 *                 while (json_scan_item(&s))
 *                     text = json_scan_text(&s);
 *             else
 *                 json_scan_skip(&s);
 *     if (json_scan_finish(&s, e) < 0) ...
 */
#ifndef HM_IO_JSON_SCAN_H
#define HM_IO_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cursor.h"
#include "core/err.h"

enum { JSON_SCAN_MAX_DEPTH = 512 };

struct json_scan {
	char *start, *at, *end;
	const char *bad; /* why; NULL: good so far */
	bool cut;        /* the text ends before the value does */
	bool first;      /* the container that is open has given no member yet */
	unsigned depth;  /* containers that are open */
};

/* The text is written into: keys and texts that were read are unescaped and end with a NUL where they stand. */
struct json_scan json_scan_of(char *text, size_t n);

enum json_kind { JSON_NONE, JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL };
/* What the next value begins as; JSON_NONE: nothing that begins one, or the end. */
enum json_kind json_scan_kind(struct json_scan *s);
const char *json_kind_name(enum json_kind k); /* "object", ... */

/* Opens the value, which must be one. */
bool json_scan_object(struct json_scan *s);
bool json_scan_array(struct json_scan *s);
/* The next member's key, its value to be read or skipped next; false at the container's end, which is then closed. */
bool json_scan_member(struct json_scan *s, char **key);
bool json_scan_item(struct json_scan *s);

/* A text: escapes undone (what is no character becomes U+FFFD, a NUL too). NULL: none, or bad. */
char *json_scan_text(struct json_scan *s);
/* Any value, as it stands in the text; checked. Empty where bad. */
struct piece json_scan_skip(struct json_scan *s);

/* All was read and nothing but white space is left: 0. Else -HM_EPROTO with the place; "unexpected EOF" where the text
 * was cut, "EOF" where there was none, as Go's decoder says it. */
int json_scan_finish(struct json_scan *s, struct hm_err *e) HM_MUST_USE;

#endif
