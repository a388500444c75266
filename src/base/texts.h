/* Texts that live as long as their keeper, each kept once: for values from files that are read again and again, whose
 * readers hold on to the pointer. A handful of them: looking one up is linear. */
#ifndef HM_BASE_TEXTS_H
#define HM_BASE_TEXTS_H

#include <stdbool.h>

#include "core/cleanup.h"

struct texts;

struct texts *texts_new(void); /* NULL where memory is short */
void texts_free(struct texts *t);
HM_DEFINE_AUTO(texts, texts_free);

/* The keeper's copy; NULL where memory is short. */
const char *texts_keep(struct texts *t, const char *text);

/* Keeps it, too. True the first time (and where memory is short): for what is to be said once. */
bool texts_first(struct texts *t, const char *text);

#endif
