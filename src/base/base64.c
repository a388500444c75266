#include "base/base64.h"

/* 0 to 63, or -1. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *out_n)
{
	size_t padding = 0, made = 0;

	if (n % 4 != 0)
		return false;
	while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < n; i += 4) {
		size_t given = i + 4 == n ? 4 - padding : 4;
		uint32_t bits = 0;

		for (size_t k = 0; k < 4; k++) {
			int v = k < given ? value_of(text[i + k]) : 0;

			if (v < 0)
				return false;
			bits = bits << 6 | (uint32_t)v;
		}
		if ((given == 3 && (bits & 0xff) != 0) || (given == 2 && (bits & 0xffff) != 0))
			return false;
		for (size_t k = 0; k + 1 < given; k++)
			out[made++] = (uint8_t)(bits >> (16 - 8 * k));
	}
	*out_n = made;
	return true;
}
