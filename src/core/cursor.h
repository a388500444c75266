/* The one way to parse text: a bounds-checked cursor whose failure is sticky, so that a caller checks once at the end.
 * After a failure every read returns 0 or an empty piece and nothing moves. Owns nothing, allocates nothing. */
#ifndef HM_CORE_CURSOR_H
#define HM_CORE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"

struct cur {
	const char *p, *end; /* what is left */
	bool bad;
};

/* A piece of the text; not NUL-terminated. */
struct piece {
	const char *p;
	size_t n;
};

struct cur cur_of(const char *text, size_t n);

bool cur_at_end(const struct cur *c); /* nothing left and nothing went wrong */

/* The text up to `stop`, which must be there and is consumed; the piece may be empty. */
struct piece cur_until(struct cur *c, char stop);

/* The next item of a list: the text up to `between`, which is consumed, or to the end; at the end this fails. */
struct piece cur_item(struct cur *c, char between);

/* The next line without its '\n'. The last line may lack one; at the end of the text this fails. */
struct piece cur_line(struct cur *c);

/* A decimal number (as num_u64) that is followed by `stop`, which is consumed. */
uint64_t cur_u64(struct cur *c, char stop, uint64_t max);

/* `word` must stand here; it is consumed. */
void cur_word(struct cur *c, const char *word);

/* All that is left. */
struct piece cur_rest(struct cur *c);

bool piece_is(struct piece s, const char *text);
bool piece_starts(struct piece s, const char *text);
bool piece_u64(struct piece s, uint64_t max, uint64_t *out) HM_MUST_USE;
/* Copies into out and terminates it; false (and "") where it does not fit or contains a NUL byte. */
bool piece_copy(struct piece s, char *out, size_t cap) HM_MUST_USE;

#endif
