/* The --config file: a YAML mapping of option names (as the flags; camelCase is taken too) to single values. */
#ifndef HM_AGENT_CONFIG_H
#define HM_AGENT_CONFIG_H

#include <stddef.h>

#include "base/options.h"
#include "core/err.h"
#include "io/json.h"

enum { CONFIG_MAX_BYTES = 64 * 1024 };

/* Sets the table's options from the file. A bad value is refused with file, line, key and reason; an unknown key is
 * warned of once. Texts point into *tree, which the caller frees (json_free) when the options die; set on failure too,
 * or NULL. */
int config_read(const char *path, const struct option_spec *table, size_t count, struct cJSON **tree,
		struct hm_err *e) HM_MUST_USE;

/* config_read for a text in memory; the message has no file name. */
int config_parse(const char *text, size_t n, const struct option_spec *table, size_t count, struct cJSON **tree,
		 struct hm_err *e) HM_MUST_USE;

#endif
