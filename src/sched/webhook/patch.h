/* JSON Patch (RFC 6902), operation by operation. */
#ifndef HM_SCHED_WEBHOOK_PATCH_H
#define HM_SCHED_WEBHOOK_PATCH_H

#include "base/str.h"

/* Adds the member `key` to the object at `path`, or replaces it. `value` is JSON. */
void patch_set(struct str *patch, const char *path, const char *key, const char *value);

/* Appends to the list at `path`; replaces its item. */
void patch_append(struct str *patch, const char *path, const char *value);
void patch_replace_item(struct str *patch, const char *path, size_t item, const char *value);

#endif
