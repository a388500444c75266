/* A set of device ids. */
#ifndef HM_SIMKUBELET_IDS_H
#define HM_SIMKUBELET_IDS_H

#include <stdbool.h>
#include <stddef.h>

struct ids {
	char **list;
	size_t count;
};

void ids_add(struct ids *s, const char *id);    /* nothing where it is there */
void ids_append(struct ids *s, const char *id); /* which is known not to be there */
void ids_remove(struct ids *s, const char *id);
bool ids_has(const struct ids *s, const char *id);
void ids_copy(struct ids *to, const struct ids *from); /* `to` is empty */
void ids_shuffle(struct ids *s);
void ids_clear(struct ids *s);

#endif
