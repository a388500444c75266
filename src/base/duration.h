/* Durations as Go's programs take and print them: "5m", "1h30m", "1.5s", "500ms", "0". In milliseconds. */
#ifndef HM_BASE_DURATION_H
#define HM_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Digits, maybe a fraction, and a unit (h, m, s, ms, us, ns), as often as one likes; or "0". Rounded down. False for
 * anything else, below zero, or above max_ms. */
bool duration_parse(const char *text, uint64_t max_ms, uint64_t *out_ms) HM_MUST_USE;

/* As Go prints it: "5m0s", "28s", "1.5s", "500ms", "0s". */
void duration_add(struct str *out, uint64_t ms);

#endif
