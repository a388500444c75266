#include "base/utc.h"

#include "core/cursor.h"
#include "core/num.h"

/* Two or four digits. */
static unsigned digits(struct cur *c, size_t n)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->p) < n || !num_u64(c->p, n, UINT64_MAX, &value))
		c->bad = true;
	else
		c->p += n;
	return (unsigned)value;
}

static unsigned days_of(unsigned year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && leap ? 29U : days[month - 1];
}

/* Days since 1970 began; 719162 is what 1969 whole years of the Gregorian calendar have. */
static int64_t day_number(unsigned year, unsigned month, unsigned day)
{
	int64_t years = (int64_t)year - 1, past = (int64_t)day - 1;

	for (unsigned m = 1; m < month; m++)
		past += days_of(year, m);
	return years * 365 + years / 4 - years / 100 + years / 400 + past - 719162;
}

/* Of a second, in thousandths. */
static unsigned fraction(struct cur *c)
{
	unsigned ms = 0, worth = 100;
	const char *from;

	if (c->bad || c->p == c->end || *c->p != '.')
		return 0;
	from = ++c->p;
	for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, worth /= 10)
		ms += (unsigned)(*c->p - '0') * worth;
	c->bad = c->p == from;
	return ms;
}

/* "Z", or "+08:00": seconds to take off. */
static int64_t read_zone(struct cur *c)
{
	unsigned hours, minutes;
	bool west;

	c->bad |= c->p == c->end;
	if (c->bad)
		return 0;
	west = *c->p == '-';
	if (*c->p++ == 'Z')
		return 0;
	c->bad = !west && c->p[-1] != '+';
	hours = digits(c, 2);
	cur_word(c, ":");
	minutes = digits(c, 2);
	c->bad |= hours > 24 || minutes > 59;
	return ((int64_t)hours * 60 + minutes) * (west ? -60 : 60);
}

bool utc_read(const char *text, size_t n, int64_t *seconds, unsigned *ms)
{
	struct cur c = cur_of(text, n);
	unsigned year, month, day, hour, minute, second, thousandths;
	int64_t zone;

	year = digits(&c, 4);
	cur_word(&c, "-");
	month = digits(&c, 2);
	cur_word(&c, "-");
	day = digits(&c, 2);
	cur_word(&c, "T");
	hour = digits(&c, 2);
	cur_word(&c, ":");
	minute = digits(&c, 2);
	cur_word(&c, ":");
	second = digits(&c, 2);
	thousandths = fraction(&c);
	zone = read_zone(&c);
	if (!cur_at_end(&c) || year < 1 || month < 1 || month > 12 || day < 1 || day > days_of(year, month) ||
	    hour > 23 || minute > 59 || second > 59)
		return false;
	*seconds = day_number(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone;
	if (ms != NULL)
		*ms = thousandths;
	return true;
}
