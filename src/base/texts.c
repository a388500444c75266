#include "base/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "core/check.h"

struct kept {
	size_t times;
	char text[];
};

struct texts {
	struct map *items; /* struct kept by its text */
};

struct texts *texts_new(void)
{
	hm_auto(texts) *t = calloc(1, sizeof *t);

	if (t == NULL)
		return NULL;
	t->items = map_new();
	return t->items != NULL ? HM_STEAL(t) : NULL;
}

void texts_free(struct texts *t)
{
	void *item;

	if (t == NULL)
		return;
	for (size_t at = 0; t->items != NULL && map_next(t->items, &at, NULL, &item);)
		free(item);
	map_free(t->items);
	free(t);
}

const char *texts_keep(struct texts *t, const char *text)
{
	struct kept *k = map_get(t->items, text);
	size_t n = strlen(text) + 1;

	if (k == NULL) {
		k = malloc(sizeof *k + n);
		if (k == NULL || map_put(t->items, text, k, NULL) < 0) {
			free(k);
			return NULL;
		}
		k->times = 0;
		memcpy(k->text, text, n);
	}
	k->times++;
	return k->text;
}

void texts_drop(struct texts *t, const char *kept)
{
	struct kept *k = map_get(t->items, kept);

	CHECK(k != NULL && k->text == kept);
	if (--k->times > 0)
		return;
	map_remove(t->items, kept);
	free(k);
}

bool texts_first(struct texts *t, const char *text)
{
	bool known = map_get(t->items, text) != NULL;

	if (!known)
		(void)texts_keep(t, text);
	return !known;
}

bool texts_next(const struct texts *t, size_t *at, const char **kept)
{
	void *item;

	if (!map_next(t->items, at, NULL, &item))
		return false;
	*kept = ((const struct kept *)item)->text;
	return true;
}
