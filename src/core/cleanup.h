/* Ownership made visible: a local that owns something is declared hm_auto(type) and freed at the end of its scope;
 * HM_STEAL hands it over. HM_DEFINE_AUTO(type, free_function) stands once beside each type's free function, which
 * accepts NULL. */
#ifndef HM_CORE_CLEANUP_H
#define HM_CORE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#include "core/macros.h"

#define HM_DEFINE_AUTO(type, free_function)                                                                            \
	static inline void hm_auto_free_##type(struct type **p)                                                        \
	{                                                                                                              \
		free_function(*p);                                                                                     \
	}                                                                                                              \
	struct type

#define hm_auto(type) __attribute__((cleanup(hm_auto_free_##type))) struct type

/* The value of the pointer p, which becomes NULL. */
#define HM_STEAL(p)                                                                                                    \
	({                                                                                                             \
		__typeof__(p) hm_stolen_ = (p);                                                                        \
		(p) = NULL;                                                                                            \
		hm_stolen_;                                                                                            \
	})

static inline void hm_auto_free_heap(void *p)
{
	free(*(void **)p);
}
#define hm_auto_heap __attribute__((cleanup(hm_auto_free_heap)))

static inline void hm_auto_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
/* An int that is a file descriptor or negative. */
#define hm_auto_fd __attribute__((cleanup(hm_auto_close_fd))) int

static inline int hm_steal_fd(int *fd)
{
	int v = *fd;
	*fd = -1;
	return v;
}

#endif
