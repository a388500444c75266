#include "rpc/grpc_text.h"

#include <string.h>

#include "core/fmt.h"
#include "core/num.h"
#include "rpc/limits.h"

static bool is_utf8_continuation(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* How much of the text is taken. */
static size_t cut(const char *text)
{
	size_t n = strnlen(text, RPC_MAX_MESSAGE_TEXT_BYTES + 1), back = 0;

	if (n <= RPC_MAX_MESSAGE_TEXT_BYTES)
		return n;
	n = RPC_MAX_MESSAGE_TEXT_BYTES;
	/* A character has at most three bytes behind its first; more is no UTF-8 and may be cut anywhere. */
	while (back < 3 && is_utf8_continuation(text[n - back]))
		back++;
	return is_utf8_continuation(text[n - back]) ? n : n - back;
}

void grpc_message_encode(struct str *out, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t n = cut(text);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 0x20 && c <= 0x7E && c != '%') {
			str_addc(out, (char)c);
		} else {
			char escape[3] = { '%', hex[c >> 4], hex[c & 15] };
			str_add_n(out, escape, sizeof escape);
		}
	}
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_message_decode(struct piece in, char *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < in.n && n + 1 < cap; i++) {
		char c = in.p[i];

		if (c == '%' && in.n - i > 2) {
			int high = hex_value(in.p[i + 1]), low = hex_value(in.p[i + 2]);

			if (high >= 0 && low >= 0) {
				c = (char)(high << 4 | low);
				i += 2;
			}
		}
		out[n++] = c == '\0' ? '?' : c;
	}
	out[n] = '\0';
}

/* Largest first; what one unit is worth in milliseconds, or how many of it make a millisecond. */
static const struct unit {
	char letter;
	uint64_t ms, per_ms;
} units[] = {
	{ 'H', 3600000, 1 }, { 'M', 60000, 1 }, { 'S', 1000, 1 }, { 'm', 1, 1 }, { 'u', 1, 1000 }, { 'n', 1, 1000000 },
};

enum { MAX_VALUE = 99999999 }; /* eight digits */

bool grpc_timeout_parse(struct piece in, uint64_t *ms)
{
	uint64_t value;

	if (in.n < 2 || in.n > 9 || !num_u64(in.p, in.n - 1, MAX_VALUE, &value))
		return false;
	for (size_t i = 0; i < HM_COUNT(units); i++) {
		if (units[i].letter == in.p[in.n - 1]) {
			*ms = value * units[i].ms / units[i].per_ms + (value % units[i].per_ms != 0);
			return true;
		}
	}
	return false;
}

void grpc_timeout_format(uint64_t ms, char out[GRPC_TIMEOUT_TEXT])
{
	for (size_t i = 4; i-- > 0;) { /* from milliseconds up */
		uint64_t value = ms / units[i].ms + (ms % units[i].ms != 0);

		if (value <= MAX_VALUE || i == 0) {
			hm_fmt(out, GRPC_TIMEOUT_TEXT, "%llu%c", (unsigned long long)HM_MIN(value, (uint64_t)MAX_VALUE),
			       units[i].letter);
			return;
		}
	}
}
