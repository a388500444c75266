/* YAML text to a cJSON tree, by the rules that users of Kubernetes files expect. One document. Plain scalars: null,
 * true, false and numbers as JSON writes them; anything else, yes/no, 010 and 0x1f included, is text. Refused: repeated
 * keys, keys that are no scalars, unknown or recursive aliases, more than YAML_MAX_NODES values (an alias counts as
 * many as it copies: "billion laughs" costs nothing), nesting beyond YAML_MAX_DEPTH. Each value's line is in its
 * `valueint`: read the tree through yaml_root (io/json.h), whose errors then name it. */
#ifndef HM_IO_YAML_H
#define HM_IO_YAML_H

#include <stddef.h>

#include "core/err.h"
#include "io/json.h"

enum {
	YAML_MAX_NODES = 200000,
	YAML_MAX_DEPTH = 64,
	YAML_MAX_KEYS = 4096, /* of one object: looking for a repeated one is linear */
};

/* -HM_EPROTO "line 7: ...", -HM_ELIMIT, -HM_ENOMEM. Free with json_free (hm_auto(cJSON)). */
int yaml_parse(const char *text, size_t n, struct cJSON **out, struct hm_err *e) HM_MUST_USE;

#endif
