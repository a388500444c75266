/* JSON texts, written piece by piece: braces, brackets and the commas of lists are the caller's. */
#ifndef HM_IO_JSON_WRITE_H
#define HM_IO_JSON_WRITE_H

#include <stdbool.h>

#include "base/str.h"

/* Bytes of the well-formed UTF-8 character that begins here, 1 to 4; 0: none does (a NUL is one of 1). */
unsigned json_char_bytes(const char *p);

/* Well-formed UTF-8, without surrogates and overlong forms: what a JSON text can hold. */
bool json_can_say(const char *text);

/* The text in quotes, escaped. Bytes that are not UTF-8 become U+FFFD each. */
void json_add_text(struct str *out, const char *text);

/* "name": with a comma before unless it comes first behind '{'. */
void json_add_name(struct str *out, const char *name);

/* The name and a text; nothing where that is NULL. */
void json_add_member(struct str *out, const char *name, const char *text);

#endif
