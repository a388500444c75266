#include "model/placement/words.h"

#include <string.h>
#include <strings.h>

#include "core/macros.h"

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct piece piece_trim(struct piece s)
{
	while (s.n > 0 && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool words_next(struct cur *list, struct piece *word)
{
	const char *comma;

	if (list->p == NULL)
		return false;
	comma = memchr(list->p, ',', (size_t)(list->end - list->p));
	word->p = list->p;
	word->n = (size_t)((comma == NULL ? list->end : comma) - list->p);
	*word = piece_trim(*word);
	list->p = comma == NULL ? NULL : comma + 1;
	return true;
}

bool words_have(const char *list, const char *word)
{
	struct cur c = { 0 };
	struct piece w;

	if (list != NULL)
		c = cur_of(list, strlen(list));
	while (words_next(&c, &w))
		if (w.n > 0 && piece_is(w, word))
			return true;
	return false;
}

static bool contains(const char *text, struct piece word)
{
	size_t n = strlen(text);

	for (size_t at = 0; at + word.n <= n; at++)
		if (strncasecmp(text + at, word.p, word.n) == 0)
			return true;
	return false;
}

bool words_any_in(const char *list, const char *text)
{
	struct cur c = cur_of(list, strlen(list));
	struct piece word;

	while (words_next(&c, &word))
		if (word.n > 0 && contains(text, word))
			return true;
	return false;
}

bool text_is_true(const char *text)
{
	static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };

	for (size_t i = 0; text != NULL && i < HM_COUNT(yes); i++)
		if (strcmp(text, yes[i]) == 0)
			return true;
	return false;
}
