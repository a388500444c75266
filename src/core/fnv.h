/* FNV-1a, 64 bits: quick, and not for what an adversary may choose against us. */
#ifndef HM_CORE_FNV_H
#define HM_CORE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/* `value`: a byte, or another that no byte can be mistaken for. */
static inline uint64_t fnv_step(uint64_t sum, unsigned value)
{
	return (sum ^ value) * UINT64_C(0x100000001b3);
}

static inline uint64_t fnv_add(uint64_t sum, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = fnv_step(sum, ((const unsigned char *)bytes)[i]);
	return sum;
}

/* The text and its end, so that what follows is not taken for more of it; NULL is another text than "". */
static inline uint64_t fnv_text(uint64_t sum, const char *text)
{
	for (const char *p = text != NULL ? text : "\xff"; *p != '\0'; p++)
		sum = fnv_step(sum, (unsigned char)*p);
	return fnv_step(sum, 0x100);
}

#endif
