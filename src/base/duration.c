#include "base/duration.h"

#include <string.h>

#include "core/num.h"

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	/* Longer names before those that they begin with. */
	{ "ms", 1000000 },      { "us", 1000 },       { "\u00b5s", 1000 }, { "ns", 1 },
	{ "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 },
};

/* Digits behind the point count while they make a difference of at least a nanosecond. */
static uint64_t fraction_ns(const char *digits, size_t n, uint64_t unit_ns)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n && unit_ns >= 10; i++) {
		unit_ns /= 10;
		v += (uint64_t)(digits[i] - '0') * unit_ns;
	}
	return v;
}

static bool take_part(const char **at, uint64_t *ns)
{
	const char *whole = *at, *fraction = NULL;
	size_t whole_n = strspn(whole, "0123456789"), fraction_n = 0;
	uint64_t v = 0, more;
	const char *p = whole + whole_n;

	if (*p == '.') {
		fraction = p + 1;
		fraction_n = strspn(fraction, "0123456789");
		p = fraction + fraction_n;
	}
	if (whole_n + fraction_n == 0)
		return false;
	for (size_t i = 0; i < HM_COUNT(units); i++) {
		size_t n = strlen(units[i].name);

		if (strncmp(p, units[i].name, n) != 0)
			continue;
		if (whole_n > 0 && !num_u64(whole, whole_n, UINT64_MAX, &v))
			return false;
		more = fraction_ns(fraction, fraction_n, units[i].ns);
		*at = p + n;
		return num_mul(v, units[i].ns, &v) && num_add(v, more, &v) && num_add(*ns, v, ns);
	}
	return false;
}

bool duration_parse(const char *text, uint64_t max_ms, uint64_t *out_ms)
{
	uint64_t ns = 0;

	if (strcmp(text, "0") != 0) {
		const char *at = text;

		do {
			if (!take_part(&at, &ns))
				return false;
		} while (*at != '\0');
	}
	if (ns / 1000000 > max_ms)
		return false;
	*out_ms = ns / 1000000;
	return true;
}

void duration_add(struct str *out, uint64_t ms)
{
	const unsigned long long hours = ms / 3600000, minutes = ms / 60000 % 60, seconds = ms / 1000 % 60;
	unsigned rest = (unsigned)(ms % 1000);

	if (ms < 1000 && ms > 0) {
		str_addf(out, "%ums", rest);
		return;
	}
	if (hours > 0)
		str_addf(out, "%lluh", hours);
	if (hours > 0 || minutes > 0)
		str_addf(out, "%llum", minutes);
	str_addf(out, "%llu", seconds);
	if (rest > 0) {
		int digits = 3;

		for (; rest % 10 == 0; rest /= 10)
			digits--;
		str_addf(out, ".%0*u", digits, rest);
	}
	str_addc(out, 's');
}
