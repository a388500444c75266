/* Numbers from text, strictly: digits only, no sign, no spaces, no 0x, no overflow. */
#ifndef HM_CORE_NUM_H
#define HM_CORE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"

/* The decimal number that text[0..n) is; false if it is anything else or above max. "007" is 7, "" is refused. */
bool num_u64(const char *text, size_t n, uint64_t max, uint64_t *out) HM_MUST_USE;

/* As num_u64 for a NUL-terminated text; NULL is refused. */
bool num_u64_str(const char *text, uint64_t max, uint64_t *out) HM_MUST_USE;

/* a * b and a + b, false on overflow. */
bool num_mul(uint64_t a, uint64_t b, uint64_t *out) HM_MUST_USE;
bool num_add(uint64_t a, uint64_t b, uint64_t *out) HM_MUST_USE;

#endif
