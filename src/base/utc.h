/* RFC 3339 times as Go's time.Parse takes them: "2026-08-21T06:20:39Z", "...T06:20:39.123456Z", "...T08:20:39+02:00".
 * (str_add_utc writes them.) */
#ifndef HM_BASE_UTC_H
#define HM_BASE_UTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unix seconds, before 1970 negative; ms (may be NULL): thousandths beyond them, what is finer is cut. False where the
 * text is no such time. */
bool utc_read(const char *text, size_t n, int64_t *seconds, unsigned *ms);

#endif
