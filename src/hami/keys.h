/* One object of HAMi's configuration files, read by a table of its keys. What the table does not name is left out, with
 * one warning for each name and process: HAMi's own readers pass over it in silence. */
#ifndef HM_HAMI_KEYS_H
#define HM_HAMI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/texts.h"
#include "core/err.h"
#include "io/json.h"

enum { HAMI_LABEL_BYTES = 64 };

enum hami_kind {
	HAMI_TEXT,     /* const char **: borrowed from the tree */
	HAMI_RESOURCE, /* const char **: a resource's name */
	HAMI_LABEL,    /* char[HAMI_LABEL_BYTES]: letters, digits, '-', '_', '.'; a whole number is taken as its text
			  unless `strict` */
	HAMI_U64,      /* uint64_t *: between min and max */
	HAMI_F64,      /* double *: between min and max */
	HAMI_BOOL,     /* bool * */
	HAMI_TREE,     /* const struct cJSON **: an object or a list, for the caller */
	HAMI_UNREAD,   /* known, and of no use here */
};

struct hami_key {
	const char *name;
	enum hami_kind kind;
	void *to;
	uint64_t min, max;
};

struct hami_keys {
	const struct hami_key *keys;
	size_t count;
	bool strict;        /* as encoding/json: names in any case, numbers are no texts */
	const char *file;   /* for the warning */
	struct texts *told; /* what was warned of; NULL: no warnings */
};

/* Absent keys, and those that are null, leave *to alone. -HM_EINVAL with place and reason. */
int hami_keys_read(const struct json_at *at, const struct hami_keys *k, struct hm_err *e) HM_MUST_USE;

/* log_warn, once for each text in the process's life. */
void hami_warn_once(struct texts *told, const char *file, const char *what, const char *key);

#endif
