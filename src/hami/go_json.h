/* JSON as Go's encoding/json writes it, to the byte: HAMi compares such texts, and a scheduler that sees the same bytes
 * does nothing. */
#ifndef HM_HAMI_GO_JSON_H
#define HM_HAMI_GO_JSON_H

#include <stdint.h>

#include "base/str.h"

/* The text in quotes. '<', '>' and '&', U+2028 and U+2029 are escaped too; bytes that are not UTF-8 become \ufffd. */
void go_json_text(struct str *out, const char *text);

/* A member of a struct with Go's "omitempty": nothing for "" and 0. A comma comes before unless it is first. */
void go_json_member_text(struct str *out, const char *name, const char *text);
void go_json_member_number(struct str *out, const char *name, int64_t number);

#endif
