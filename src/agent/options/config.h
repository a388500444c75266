/* The --config file: a YAML mapping of option names (as the flags; camelCase is taken too) to single values. */
#ifndef HM_AGENT_OPTIONS_CONFIG_H
#define HM_AGENT_OPTIONS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "base/texts.h"
#include "core/err.h"

enum { CONFIG_MAX_BYTES = 64 * 1024 };

struct config_target {
	const struct option_spec *table;
	size_t count;
	struct texts *texts; /* keeps the values */
	struct texts *told;  /* keeps what was warned of */
	bool hami;           /* deviceSplitCount is --device-split-count, not --cores-per-device */
	/* What the table's kinds cannot say, after each key: the fault then has the key's line. NULL: not looked at. */
	int (*check)(const void *arg, struct hm_err *e);
	const void *arg;
};

/* Sets the table's options from the file. A bad value is refused with file, line, key and reason; an unknown key is
 * warned of once. */
int config_read(const char *path, const struct config_target *to, struct hm_err *e) HM_MUST_USE;

/* config_read for a text in memory; the message has no file name. */
int config_parse(const char *text, size_t n, const struct config_target *to, struct hm_err *e) HM_MUST_USE;

#endif
