#include "hami/node_lock.h"

#include <string.h>

#include "core/cursor.h"
#include "core/num.h"

static const char separator = ',';

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

static void skip_fraction(struct cur *c)
{
	const char *from;

	if (c->bad || c->p == c->end || *c->p != '.')
		return;
	from = ++c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	c->bad = c->p == from;
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

/* RFC 3339 as Go's time.Parse takes it. */
static bool read_time(struct piece text, int64_t *out)
{
	struct cur c = cur_of(text.p, text.n);
	unsigned year, month, day, hour, minute, second;
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
	skip_fraction(&c);
	zone = read_zone(&c);
	if (!cur_at_end(&c) || year < 1 || month < 1 || month > 12 || day < 1 || day > days_of(year, month) ||
	    hour > 23 || minute > 59 || second > 59)
		return false;
	*out = day_number(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone;
	return true;
}

int node_lock_parse(const char *value, struct node_lock *out, struct hm_err *e)
{
	size_t n = strlen(value);
	struct piece time = { value, n };

	*out = (struct node_lock) { 0 };
	if (strchr(value, separator) != NULL) {
		struct cur c = cur_of(value, n);
		struct piece name;
		bool fits;

		time = cur_until(&c, separator);
		fits = piece_copy(cur_until(&c, separator), out->pod_namespace, sizeof out->pod_namespace);
		name = cur_rest(&c);
		if (c.bad || !fits || !piece_copy(name, out->pod_name, sizeof out->pod_name) ||
		    strchr(out->pod_name, separator) != NULL)
			return hm_err_set(e, HM_EPROTO, "node lock \"%.100s\" is not \"<time>,<namespace>,<name>\"",
					  value);
	}
	if (!read_time(time, &out->taken_s))
		return hm_err_set(e, HM_EPROTO, "node lock \"%.100s\": not an RFC 3339 time", value);
	return 0;
}

void node_lock_write(const struct node_lock *lock, struct str *out)
{
	str_add_utc(out, (uint64_t)lock->taken_s * 1000);
	str_addf(out, "Z,%s,%s", lock->pod_namespace, lock->pod_name);
}

bool node_lock_releasable(const char *value, const char *pod_namespace, const char *pod_name)
{
	size_t n, name = strlen(pod_name), owner = strlen(pod_namespace) + name + 2;
	const char *tail;

	if (value == NULL)
		return false;
	if (strchr(value, separator) == NULL)
		return true;
	n = strlen(value);
	if (n < owner)
		return false;
	tail = value + n - owner;
	return tail[0] == separator && strncmp(tail + 1, pod_namespace, owner - name - 2) == 0 &&
	       tail[owner - name - 1] == separator && strcmp(tail + owner - name, pod_name) == 0;
}
