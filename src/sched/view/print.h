/* Prints of texts, to see at once that nothing of them has changed. Not for what an adversary may choose against us. */
#ifndef HM_SCHED_VIEW_PRINT_H
#define HM_SCHED_VIEW_PRINT_H

#include "core/fnv.h"

#define PRINT_BEGIN FNV_BEGIN

/* Over the text and its end; NULL is another text than "". */
static inline uint64_t print_mix(uint64_t print, const char *text)
{
	return fnv_text(print, text);
}

#endif
