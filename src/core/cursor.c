#include "core/cursor.h"

#include <string.h>

#include "core/num.h"

struct cur cur_of(const char *text, size_t n)
{
	return (struct cur) { text, text + n, false };
}

bool cur_at_end(const struct cur *c)
{
	return !c->bad && c->p == c->end;
}

static struct piece fail(struct cur *c)
{
	c->bad = true;
	return (struct piece) { c->p, 0 };
}

struct piece cur_until(struct cur *c, char stop)
{
	struct piece s;
	const char *at = NULL;

	if (!c->bad && c->p < c->end)
		at = memchr(c->p, stop, (size_t)(c->end - c->p));
	if (at == NULL)
		return fail(c);
	s = (struct piece) { c->p, (size_t)(at - c->p) };
	c->p = at + 1;
	return s;
}

struct piece cur_item(struct cur *c, char between)
{
	if (c->bad || c->p == c->end)
		return fail(c);
	if (memchr(c->p, between, (size_t)(c->end - c->p)) != NULL)
		return cur_until(c, between);
	return cur_rest(c);
}

struct piece cur_line(struct cur *c)
{
	return cur_item(c, '\n');
}

uint64_t cur_u64(struct cur *c, char stop, uint64_t max)
{
	struct cur before = *c;
	struct piece s = cur_until(c, stop);
	uint64_t v = 0;

	if (c->bad || piece_u64(s, max, &v))
		return v;
	*c = before;
	c->bad = true;
	return 0;
}

void cur_word(struct cur *c, const char *word)
{
	size_t n = strlen(word);

	if (c->bad || (size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
		c->bad = true;
	else
		c->p += n;
}

struct piece cur_rest(struct cur *c)
{
	struct piece s = { c->p, (size_t)(c->end - c->p) };

	if (c->bad)
		return fail(c);
	c->p = c->end;
	return s;
}

bool piece_is(struct piece s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool piece_starts(struct piece s, const char *text)
{
	size_t n = strlen(text);

	return s.n >= n && memcmp(s.p, text, n) == 0;
}

bool piece_u64(struct piece s, uint64_t max, uint64_t *out)
{
	return num_u64(s.p, s.n, max, out);
}

bool piece_copy(struct piece s, char *out, size_t cap)
{
	if (s.n >= cap || memchr(s.p, '\0', s.n) != NULL) {
		if (cap > 0)
			out[0] = '\0';
		return false;
	}
	memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return true;
}
