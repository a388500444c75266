/* Intrusive doubly linked list. A link is on one list or on none; removing twice is harmless. */
#ifndef HM_CORE_LINK_H
#define HM_CORE_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/macros.h"

struct link {
	struct link *prev, *next; /* NULL when on no list */
};

/* A list is a link whose neighbours are its last and first elements. */
static inline void list_init(struct link *list)
{
	list->prev = list->next = list;
}

static inline bool list_empty(const struct link *list)
{
	return list->next == list;
}

static inline bool link_on_list(const struct link *l)
{
	return l->next != NULL;
}

static inline void link_append(struct link *list, struct link *l)
{
	l->prev = list->prev;
	l->next = list;
	list->prev->next = l;
	list->prev = l;
}

static inline void link_remove(struct link *l)
{
	if (l->next == NULL)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->prev = l->next = NULL;
}

static inline struct link *list_first(const struct link *list)
{
	return list_empty(list) ? NULL : list->next;
}

/* For each element; `it` may be removed and freed in the body. */
#define LIST_FOR_EACH(list, it)                                                                                        \
	for (struct link *it = (list)->next, *hm_next_ = it->next; it != (list); it = hm_next_, hm_next_ = it->next)

#endif
