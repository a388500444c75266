#include "io/json_write.h"

#include <stdint.h>

unsigned json_char_bytes(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = { { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };

	for (unsigned n = 0; n < HM_COUNT(forms); n++) {
		uint32_t c = p[0] & (uint32_t)(unsigned char)~forms[n].mask;

		if ((p[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (unsigned i = 1; i <= n; i++) {
			if ((p[i] & 0xc0) != 0x80) /* a NUL ends it here */
				return 0;
			c = c << 6 | (p[i] & 0x3fU);
		}
		if (c < forms[n].least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return 0;
		return n + 1;
	}
	return 0;
}

bool json_can_say(const char *p)
{
	while (*p != '\0') {
		unsigned n = json_char_bytes(p);

		if (n == 0)
			return false;
		p += n;
	}
	return true;
}

/* Bytes from p on that stand for themselves: most texts are nothing else. */
static size_t plain_bytes(const char *p)
{
	size_t n = 0;

	while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

void json_add_text(struct str *out, const char *text)
{
	const char *p = text;

	str_addc(out, '"');
	for (;;) {
		size_t plain = plain_bytes(p);
		unsigned n;

		str_add_n(out, p, plain);
		p += plain;
		if (*p == '\0')
			break;
		n = json_char_bytes(p);
		if (n == 0) {
			str_add(out, "\xef\xbf\xbd");
			n = 1;
		} else if (*p == '"' || *p == '\\') {
			str_addc(out, '\\');
			str_addc(out, *p);
		} else if ((unsigned char)*p < 0x20) {
			str_addf(out, "\\u%04x", *p);
		} else {
			str_add_n(out, p, n);
		}
		p += n;
	}
	str_addc(out, '"');
}

void json_add_name(struct str *out, const char *name)
{
	if (out->n > 0 && out->p[out->n - 1] != '{')
		str_addc(out, ',');
	json_add_text(out, name);
	str_addc(out, ':');
}

void json_add_member(struct str *out, const char *name, const char *text)
{
	if (text == NULL)
		return;
	json_add_name(out, name);
	json_add_text(out, text);
}
