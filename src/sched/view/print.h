/* Prints of texts, to see at once that nothing of them has changed. Not for what an adversary may choose against us. */
#ifndef HM_SCHED_VIEW_PRINT_H
#define HM_SCHED_VIEW_PRINT_H

#include "core/fnv.h"

#define PRINT_BEGIN FNV_BEGIN

/* Over the text and its end; NULL is another text than "". */
static inline uint64_t print_mix(uint64_t print, const char *text)
{
	for (const char *p = text != NULL ? text : "\xff"; *p != '\0'; p++)
		print = fnv_step(print, (unsigned char)*p);
	return fnv_step(print, 0x100);
}

#endif
