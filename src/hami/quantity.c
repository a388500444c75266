#include "hami/quantity.h"

#include <stdio.h>
#include <string.h>

#include "core/cursor.h"
#include "core/macros.h"
#include "io/json.h"

enum {
	NANO_DIGITS = 9, /* the API server keeps nine decimals; what is below rounds away from zero */
	NANO = 1000000000,
	NANOS_A_MILLI = 1000000,
	DIGITLESS_TEN_MIN = -9, /* "k" or "Ti", a suffix without a digit, is 0 as far as the library can read it */
	DIGITLESS_TWO_MAX = 40, /* by its int64 path, and refused beyond */
};

static const struct suffix {
	const char *text;
	int8_t ten, two; /* powers */
} suffixes[] = {
	{ "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },  { "k", 3, 0 },   { "M", 6, 0 },
	{ "G", 9, 0 },   { "T", 12, 0 },  { "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
	{ "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

/* sign whole [ "." part ] suffix */
struct parts {
	bool negative;
	struct piece whole, part;
	int64_t ten; /* power of ten of the suffix */
	unsigned two;
};

typedef unsigned __int128 wide; /* a magnitude in nanos, or WIDE_HUGE */

/* Above every value that int64_t holds, and far enough below 2^128 for one more digit. */
static const wide WIDE_HUGE = (wide)1 << 100;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct piece take_digits(struct cur *c)
{
	struct piece digits = { c->p, 0 };

	while (c->p < c->end && is_digit(*c->p))
		c->p++;
	digits.n = (size_t)(c->p - digits.p);
	return digits;
}

/* "e3", "E-2"; the library cuts the exponent to 32 bits, so do we. */
static bool read_exponent(struct piece s, int64_t *ten)
{
	bool minus = s.n > 1 && s.p[1] == '-';
	size_t at = minus || (s.n > 1 && s.p[1] == '+') ? 2 : 1;
	uint64_t v;

	if (s.n < 2 || (*s.p != 'e' && *s.p != 'E') ||
	    !piece_u64((struct piece) { s.p + at, s.n - at }, (uint64_t)INT64_MAX + minus, &v))
		return false;
	*ten = (int32_t)(uint32_t)(minus ? 0 - v : v);
	return true;
}

static bool read_suffix(struct piece s, struct parts *p)
{
	for (size_t i = 0; i < HM_COUNT(suffixes); i++)
		if (piece_is(s, suffixes[i].text)) {
			p->ten = suffixes[i].ten;
			p->two = (unsigned)suffixes[i].two;
			return true;
		}
	return read_exponent(s, &p->ten);
}

static bool read_parts(struct cur *c, struct parts *p)
{
	*p = (struct parts) { .part = { "", 0 } };
	if (c->p == c->end)
		return false;
	if (*c->p == '-' || *c->p == '+')
		p->negative = *c->p++ == '-';
	p->whole = take_digits(c);
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		p->part = take_digits(c);
	}
	if (!read_suffix(cur_rest(c), p))
		return false;
	return p->whole.n + p->part.n > 0 || (p->two == 0 ? p->ten >= DIGITLESS_TEN_MIN : p->two <= DIGITLESS_TWO_MAX);
}

/* v times ten and a digit; stays HUGE. */
static wide shift_in(wide v, unsigned digit)
{
	return v >= WIDE_HUGE ? WIDE_HUGE : v * 10 + digit;
}

/* |whole.part * 10^ten| in nanos. */
static wide decimal_nanos(const struct parts *p)
{
	int64_t keep = (int64_t)p->whole.n + p->ten + NANO_DIGITS; /* digits before the nano's end */
	int64_t all = (int64_t)(p->whole.n + p->part.n);
	bool below = false;
	wide v = 0;

	for (int64_t i = 0; i < all; i++) {
		char c = i < (int64_t)p->whole.n ? p->whole.p[i] : p->part.p[i - (int64_t)p->whole.n];

		if (i < keep)
			v = shift_in(v, (unsigned)(c - '0'));
		else
			below |= c != '0';
	}
	for (int64_t i = all; i < keep && v != 0 && v < WIDE_HUGE; i++)
		v = shift_in(v, 0);
	return v + below;
}

/* |whole.part * 2^two| in nanos; the library caps what has a binary suffix at INT64_MAX. */
static wide binary_nanos(const struct parts *p)
{
	const wide most = (wide)INT64_MAX * NANO;
	wide whole = 0, part = 0;
	bool below = false;

	for (size_t i = 0; i < p->whole.n; i++)
		whole = shift_in(whole, (unsigned)(p->whole.p[i] - '0'));
	if (whole > INT64_MAX)
		return most;
	/* 0.d1d2... * 2^two * 10^9 from the last digit on; flooring at each digit floors the whole. */
	for (size_t i = p->part.n; i-- > 0;) {
		part += (wide)(p->part.p[i] - '0') * (((wide)1 << p->two) * NANO);
		below |= part % 10 != 0;
		part /= 10;
	}
	if ((whole << p->two) > INT64_MAX)
		return most;
	whole = (whole << p->two) * NANO + part + below;
	return whole < most ? whole : most;
}

/* |text| in nanos. */
static int parse_nanos(struct piece text, bool *negative, wide *out, struct hm_err *e)
{
	struct cur c = cur_of(text.p, text.n);
	struct parts p;

	if (!read_parts(&c, &p))
		return hm_err_set(e, HM_EINVAL,
				  "quantities must match the regular expression "
				  "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
	*negative = p.negative;
	*out = p.two != 0 ? binary_nanos(&p) : decimal_nanos(&p);
	return 0;
}

int quantity_parse(const char *text, size_t n, struct quantity *out, struct hm_err *e)
{
	bool negative;
	wide v, whole;

	if (parse_nanos((struct piece) { text, n }, &negative, &v, e) < 0)
		return -HM_EINVAL;
	whole = v / NANO + (v % NANO != 0);
	if (whole > (wide)INT64_MAX + negative) {
		*out = (struct quantity) { QUANTITY_HUGE, negative ? INT64_MIN : INT64_MAX };
		return 0;
	}
	out->kind = v % NANO == 0 ? QUANTITY_WHOLE : QUANTITY_FRACTION;
	out->value = (int64_t)(negative ? 0 - (uint64_t)whole : (uint64_t)whole);
	return 0;
}

/* Texts lose the spaces around them here and nowhere else. A number's own text is gone by now: 17 digits say what the
 * double holds. */
static int text_of(const struct cJSON *value, char digits[32], struct piece *out, struct hm_err *e)
{
	const char *text = value->valuestring;

	*out = (struct piece) { "", 0 };
	if (cJSON_IsNull(value)) {
		text = "0";
	} else if (cJSON_IsNumber(value)) {
		(void)snprintf(digits, 32, "%.17g", value->valuedouble);
		text = digits;
	} else if (!cJSON_IsString(value)) {
		return hm_err_set(e, HM_EINVAL, "a quantity is a text or a number");
	}
	text += strspn(text, " ");
	*out = (struct piece) { text, strlen(text) };
	while (out->n > 0 && text[out->n - 1] == ' ')
		out->n--;
	return 0;
}

int quantity_read(const struct cJSON *value, struct quantity *out, struct hm_err *e)
{
	char digits[32];
	struct piece text;

	if (text_of(value, digits, &text, e) < 0)
		return -HM_EINVAL;
	return quantity_parse(text.p, text.n, out, e);
}

int quantity_read_milli(const struct cJSON *value, int64_t *out, struct hm_err *e)
{
	char digits[32];
	struct piece text;
	bool negative;
	wide v;

	if (text_of(value, digits, &text, e) < 0 || parse_nanos(text, &negative, &v, e) < 0)
		return -HM_EINVAL;
	v = HM_MIN(v / NANOS_A_MILLI + (v % NANOS_A_MILLI != 0), (wide)INT64_MAX);
	*out = negative ? -(int64_t)v : (int64_t)v;
	return 0;
}
