#include "base/str.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"

void str_fini(struct str *s)
{
	free(s->p);
	*s = (struct str) { 0 };
}

void str_wipe(struct str *s)
{
	if (s->p != NULL)
		explicit_bzero(s->p, s->cap);
	str_fini(s);
}

void str_clear(struct str *s)
{
	s->n = 0;
	s->failed = false;
	if (s->p != NULL)
		s->p[0] = '\0';
}

/* Room for n more bytes and the NUL. */
static bool grow(struct str *s, size_t n)
{
	size_t cap = s->cap > 0 ? s->cap : 64;
	char *p;

	if (s->failed || n > SIZE_MAX / 4 - s->n) {
		s->failed = true;
		return false;
	}
	if (s->n + n + 1 <= s->cap)
		return true;
	while (cap < s->n + n + 1)
		cap *= 2;
	p = realloc(s->p, cap);
	if (p == NULL) {
		s->failed = true;
		return false;
	}
	s->p = p;
	s->cap = cap;
	return true;
}

void str_add_n(struct str *s, const void *bytes, size_t n)
{
	if (!grow(s, n))
		return;
	if (n > 0)
		memcpy(s->p + s->n, bytes, n);
	s->n += n;
	s->p[s->n] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_add_n(s, text, strlen(text));
}

void str_addc(struct str *s, char c)
{
	str_add_n(s, &c, 1);
}

void str_addf(struct str *s, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = hm_vfmt(small, sizeof small, fmt, ap);
	va_end(ap);
	if (n < sizeof small) {
		str_add_n(s, small, n);
		return;
	}
	if (!grow(s, n))
		return;
	va_start(ap, fmt);
	hm_vfmt(s->p + s->n, n + 1, fmt, ap);
	va_end(ap);
	s->n += n;
}

void str_add_escaped(struct str *s, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			str_addf(s, "\\%c", c);
		else if (c == '\n')
			str_add(s, "\\n");
		else if (c == '\t')
			str_add(s, "\\t");
		else if (c < 0x20 || c >= 0x7f)
			str_addf(s, "\\x%02x", c);
		else
			str_addc(s, (char)c);
	}
}

/* Civil date from days since 1970 (Howard Hinnant's days algorithm): gmtime would do, but localtime's family is banned.
 */
void str_add_utc(struct str *s, uint64_t wall_ms)
{
	uint64_t sec = wall_ms / 1000, day = sec / 86400, z = day + 719468;
	uint64_t era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	uint64_t month = mp < 10 ? mp + 3 : mp - 9;

	str_addf(s, "%04llu-%02llu-%02lluT%02llu:%02llu:%02llu", (unsigned long long)(yoe + era * 400 + (month <= 2)),
		 (unsigned long long)month, (unsigned long long)(doy - (153 * mp + 2) / 5 + 1),
		 (unsigned long long)(sec / 3600 % 24), (unsigned long long)(sec / 60 % 60),
		 (unsigned long long)(sec % 60));
}

char *str_take(struct str *s)
{
	char *p;

	if (!s->failed && s->p == NULL)
		str_add(s, "");
	if (s->failed) {
		str_fini(s);
		return NULL;
	}
	p = s->p;
	*s = (struct str) { 0 };
	return p;
}
