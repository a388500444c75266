/* The text form that claims and the node file share: a first line "<magic> <version>", "key=value" lines in any order,
 * a last line "end". Strict: an unknown key, a missing or doubled one, anything after "end" is refused. Older versions
 * are read: a key that came later is unknown in them. */
#ifndef HM_MODEL_RECORD_H
#define HM_MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cursor.h"
#include "core/err.h"

struct record_key {
	const char *name;
	bool repeats; /* any number of times, none too; others stand exactly once */
	/* Reads the value into `into`; sets an error that says what is accepted, without line or key. */
	int (*read)(struct piece value, void *into, struct hm_err *e);
	unsigned since; /* the version that it came with; 0: the first */
};

struct record_format {
	const char *magic;
	unsigned version; /* the newest */
	const struct record_key *keys;
	size_t key_count; /* at most 32 */
};

/* -HM_EPROTO names line and reason, -HM_EUNSUPPORTED a newer version; or what `read` returned. `into` may be
 * partly filled on failure. */
int record_parse(const struct record_format *format, const char *text, size_t n, void *into,
		 struct hm_err *e) HM_MUST_USE;

/* The opposite of str_add_escaped: false (and "") for an escape that it never writes, a NUL, or what does not fit. */
bool record_unescape(struct piece s, char *out, size_t cap) HM_MUST_USE;

/* A UUID as one word: printable ASCII without blanks, quotes and backslashes. False (and "") for others. */
bool record_word(struct piece s, char *out, size_t cap) HM_MUST_USE;

#endif
