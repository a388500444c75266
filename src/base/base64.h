/* Base64, strictly: no spaces, unused bits zero; the standard alphabet with padding, no missing or stray one, and the
 * alphabet of URLs (- and _) without. */
#ifndef HM_BASE_BASE64_H
#define HM_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/macros.h"

/* Decodes n characters into out (room for n / 4 * 3 bytes); false where they are no base64. */
bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *out_n) HM_MUST_USE;

/* The same of base64url, into cap bytes; false also where it does not fit. */
bool base64url_decode(const char *text, size_t n, uint8_t *out, size_t cap, size_t *out_n) HM_MUST_USE;

void base64_add(struct str *out, const uint8_t *bytes, size_t n);
void base64url_add(struct str *out, const uint8_t *bytes, size_t n);

#endif
