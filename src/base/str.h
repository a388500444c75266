/* A growing byte string. Its failure is sticky: after an allocation failed, appends do nothing and str_failed() is
 * true, so that a writer checks once at the end. Always NUL-terminated once something was appended. */
#ifndef HM_BASE_STR_H
#define HM_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/macros.h"

struct str {
	char *p; /* owned; NULL while empty */
	size_t n, cap;
	bool failed;
};

void str_fini(struct str *s); /* frees the text; s is empty again and usable */
static inline void str_auto_fini(struct str *s)
{
	str_fini(s);
}
/* A local: hm_auto_str s = { 0 }; */
#define hm_auto_str __attribute__((cleanup(str_auto_fini))) struct str

/* As str_fini; the memory is overwritten before (not what earlier growth left behind). */
void str_wipe(struct str *s);
/* A local that holds a secret: hm_auto_secret s = { 0 }; */
#define hm_auto_secret __attribute__((cleanup(str_wipe))) struct str

void str_clear(struct str *s); /* length 0, memory kept, failure forgotten */
void str_add(struct str *s, const char *text);
void str_add_n(struct str *s, const void *bytes, size_t n);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) HM_PRINTF(2, 3); /* core/fmt.h's conversions */

/* Text with every byte outside printable ASCII, and " and \, as an escape (\n, \t, \xNN), so that hostile text stays on
 * one line and inside its quotes. The quotes are not added. */
void str_add_escaped(struct str *s, const char *text, size_t n);

/* The second that begins or is under way so many milliseconds after 1970 began, in UTC: "2026-11-29T23:59:07". */
void str_add_utc(struct str *s, uint64_t wall_ms);

static inline bool str_failed(const struct str *s)
{
	return s->failed;
}
/* The text, "" while empty; valid until the next change. */
static inline const char *str_text(const struct str *s)
{
	return s->p == NULL ? "" : s->p;
}
/* The text moves to the caller, who frees it; NULL where an allocation failed (the partial text is freed). */
char *str_take(struct str *s) HM_MUST_USE;

#endif
