/* Prints of texts, to see at once that nothing of them has changed. Not for what an adversary may choose against us. */
#ifndef HM_SCHED_VIEW_PRINT_H
#define HM_SCHED_VIEW_PRINT_H

#include <stddef.h>
#include <stdint.h>

#define PRINT_BEGIN UINT64_C(14695981039346656037)

/* FNV-1a over the text and its end; NULL is another text than "". */
static inline uint64_t print_mix(uint64_t print, const char *text)
{
	for (const char *p = text != NULL ? text : "\xff"; *p != '\0'; p++)
		print = (print ^ (unsigned char)*p) * UINT64_C(1099511628211);
	return (print ^ 0x100) * UINT64_C(1099511628211);
}

#endif
