#include "hami/go_json.h"

#include <string.h>

#include "io/json_write.h"

/* Two-character escapes by what they stand for. */
static char short_escape(char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", escape[] = "\"\\bfnrt";
	const char *at = strchr(plain, c);

	return at == NULL ? '\0' : escape[at - plain];
}

static bool is_line_separator(const char *p, unsigned n)
{
	return n == 3 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0);
}

void go_json_text(struct str *out, const char *text)
{
	const char *p = text;

	str_addc(out, '"');
	while (*p != '\0') {
		unsigned n = json_char_bytes(p);

		if (n == 0) {
			str_add(out, "\\ufffd");
			n = 1;
		} else if (short_escape(*p) != '\0') {
			str_addc(out, '\\');
			str_addc(out, short_escape(*p));
		} else if ((unsigned char)*p < 0x20 || *p == '<' || *p == '>' || *p == '&') {
			str_addf(out, "\\u%04x", (unsigned)*p);
		} else if (is_line_separator(p, n)) {
			str_addf(out, "\\u20%02x", (unsigned char)p[2] & 0x3fU);
		} else {
			str_add_n(out, p, n);
		}
		p += n;
	}
	str_addc(out, '"');
}

void go_json_member_text(struct str *out, const char *name, const char *text)
{
	if (*text == '\0')
		return;
	json_add_name(out, name);
	go_json_text(out, text);
}

void go_json_member_number(struct str *out, const char *name, int64_t number)
{
	if (number == 0)
		return;
	json_add_name(out, name);
	str_addf(out, "%lld", (long long)number);
}
