#include "base/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct texts {
	char **items;
	size_t count, cap;
};

struct texts *texts_new(void)
{
	return calloc(1, sizeof(struct texts));
}

void texts_free(struct texts *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->count; i++)
		free(t->items[i]);
	free(t->items);
	free(t);
}

static const char *find(const struct texts *t, const char *text)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->items[i], text) == 0)
			return t->items[i];
	return NULL;
}

const char *texts_keep(struct texts *t, const char *text)
{
	const char *known = find(t, text);
	char *copy;

	if (known != NULL)
		return known;
	copy = strdup(text);
	if (copy == NULL || !HM_PUSH(t->items, t->count, t->cap, copy)) {
		free(copy);
		return NULL;
	}
	return copy;
}

bool texts_first(struct texts *t, const char *text)
{
	bool known = find(t, text) != NULL;

	if (!known)
		(void)texts_keep(t, text);
	return !known;
}
