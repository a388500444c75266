/* A hash map from text to a pointer that it does not own. Order of iteration is that of insertion. */
#ifndef HM_BASE_MAP_H
#define HM_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"

struct map;

/* NULL where memory is short. */
struct map *map_new(void);
void map_free(struct map *m); /* the keys, not the values */
HM_DEFINE_AUTO(map, map_free);

/* Sets or replaces; the key is copied. *old (if given) gets the value that was there, or NULL. -HM_ENOMEM changes
 * nothing. */
int map_put(struct map *m, const char *key, void *value, void **old) HM_MUST_USE;
void *map_get(const struct map *m, const char *key); /* NULL where absent */
void *map_remove(struct map *m, const char *key);    /* the value, NULL where absent */
size_t map_count(const struct map *m);

/* Start with at = 0; false at the end. The map must not change meanwhile, but for map_remove of the current key. */
bool map_next(const struct map *m, size_t *at, const char **key, void **value);

#endif
