/* Texts kept once each, for values that are read again and again and whose readers hold on to the pointer: equal texts
 * are the same pointer. One lives until it was dropped as often as it was kept, or as long as its keeper. */
#ifndef HM_BASE_TEXTS_H
#define HM_BASE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cleanup.h"

struct texts;

struct texts *texts_new(void); /* NULL where memory is short */
void texts_free(struct texts *t);
HM_DEFINE_AUTO(texts, texts_free);

/* The keeper's copy; NULL where memory is short. */
const char *texts_keep(struct texts *t, const char *text);
void texts_drop(struct texts *t, const char *kept); /* one that texts_keep gave */

/* Keeps it, too. True the first time (and where memory is short): for what is to be said once. */
bool texts_first(struct texts *t, const char *text);

/* Start with at = 0; false at the end; nothing is kept or dropped meanwhile. */
bool texts_next(const struct texts *t, size_t *at, const char **kept);

#endif
