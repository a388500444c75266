#include "core/num.h"

#include <string.h>

bool num_u64(const char *text, size_t n, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned digit = (unsigned)(unsigned char)text[i] - '0';
		if (digit > 9 || !num_mul(v, 10, &v) || !num_add(v, digit, &v))
			return false;
	}
	if (v > max)
		return false;
	*out = v;
	return true;
}

bool num_u64_str(const char *text, uint64_t max, uint64_t *out)
{
	return text != NULL && num_u64(text, strlen(text), max, out);
}

bool num_mul(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

bool num_add(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}
