/* Growing arrays without a type of their own: HM_PUSH(a->items, a->count, a->cap, value) makes room and appends. */
#ifndef HM_BASE_ARRAY_H
#define HM_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/macros.h"

/* Room for `want` elements of `size` bytes in *items (a pointer to the array's pointer); false where memory is short.
 */
bool array_reserve(void *items, size_t *cap, size_t want, size_t size) HM_MUST_USE;

/* True when appended; false where memory is short (nothing changed). */
#define HM_PUSH(items, count, cap, ...)                                                                                \
	(array_reserve(&(items), &(cap), (count) + 1, sizeof *(items)) ? ((items)[(count)++] = __VA_ARGS__, true)      \
								       : false)

#endif
