/* A small formatter for places that may not use stdio (libvgpu, error messages). A subset of printf:
 * %% %c %s %.*s %.Ns, %d %i %u %x with l, ll, z, %p; flags '-' and '0', width as digits or '*'. An unknown conversion
 * is copied as it stands. No locale, no allocation, no floating point. */
#ifndef HM_CORE_FMT_H
#define HM_CORE_FMT_H

#include <stdarg.h>
#include <stddef.h>

#include "core/macros.h"

/* Writes at most cap bytes including the NUL (nothing where cap is 0). Returns the length the whole text has, as
 * snprintf does, so that a return >= cap says "cut". */
size_t hm_vfmt(char *out, size_t cap, const char *fmt, va_list ap) HM_PRINTF(3, 0);
size_t hm_fmt(char *out, size_t cap, const char *fmt, ...) HM_PRINTF(3, 4);

#endif
