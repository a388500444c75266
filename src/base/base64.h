/* Standard base64 with padding, strictly: no spaces, no missing or stray padding, unused bits zero. */
#ifndef HM_BASE_BASE64_H
#define HM_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"

/* Decodes n characters into out (room for n / 4 * 3 bytes); false where they are no base64. */
bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *out_n) HM_MUST_USE;

#endif
