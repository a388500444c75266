#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* 0 to 63, or -1. The two last characters differ between the alphabets. */
static int value_of(char c, const char last[2])
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == last[0])
		return 62;
	return c == last[1] ? 63 : -1;
}

/* n characters without padding; out has room. */
static bool decode(const char *text, size_t n, const char last[2], uint8_t *out, size_t *out_n)
{
	size_t made = 0;

	for (size_t i = 0; i < n; i += 4) {
		size_t given = n - i < 4 ? n - i : 4;
		uint32_t bits = 0;

		for (size_t k = 0; k < 4; k++) {
			int v = k < given ? value_of(text[i + k], last) : 0;

			if (v < 0)
				return false;
			bits = bits << 6 | (uint32_t)v;
		}
		if (given == 1 || (given == 3 && (bits & 0xff) != 0) || (given == 2 && (bits & 0xffff) != 0))
			return false;
		for (size_t k = 0; k + 1 < given; k++)
			out[made++] = (uint8_t)(bits >> (16 - 8 * k));
	}
	*out_n = made;
	return true;
}

bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *out_n)
{
	size_t padding = 0;

	if (n % 4 != 0)
		return false;
	while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
		padding++;
	return decode(text, n - padding, "+/", out, out_n);
}

bool base64url_decode(const char *text, size_t n, uint8_t *out, size_t cap, size_t *out_n)
{
	return n / 4 * 3 + n % 4 * 3 / 4 <= cap && decode(text, n, "-_", out, out_n);
}

static void encode(struct str *out, const uint8_t *bytes, size_t n, const char last[2], bool pad)
{
	for (size_t i = 0; i < n; i += 3) {
		size_t given = n - i < 3 ? n - i : 3;
		uint32_t bits = 0;

		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < given ? bytes[i + k] : 0);
		for (size_t k = 0; k <= given; k++) {
			uint32_t v = bits >> (18 - 6 * k) & 0x3f;

			str_addc(out, v >= 62 ? last[v - 62] : letters[v]);
		}
		for (size_t k = given; pad && k < 3; k++)
			str_addc(out, '=');
	}
}

void base64_add(struct str *out, const uint8_t *bytes, size_t n)
{
	encode(out, bytes, n, "+/", true);
}

void base64url_add(struct str *out, const uint8_t *bytes, size_t n)
{
	encode(out, bytes, n, "-_", false);
}
