#include "sim/simkubelet/ids.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "sim/simkubelet/node.h"

static size_t place_of(const struct ids *s, const char *id)
{
	size_t i = 0;

	while (i < s->count && strcmp(s->list[i], id) != 0)
		i++;
	return i;
}

bool ids_has(const struct ids *s, const char *id)
{
	return place_of(s, id) < s->count;
}

void ids_append(struct ids *s, const char *id)
{
	char **more = realloc(s->list, (s->count + 1) * sizeof *more);

	CHECK(more != NULL);
	s->list = more;
	s->list[s->count++] = node_text(id);
}

void ids_add(struct ids *s, const char *id)
{
	if (!ids_has(s, id))
		ids_append(s, id);
}

void ids_remove(struct ids *s, const char *id)
{
	size_t i = place_of(s, id);

	if (i == s->count)
		return;
	free(s->list[i]);
	memmove(&s->list[i], &s->list[i + 1], (s->count - i - 1) * sizeof *s->list);
	s->count--;
}

void ids_copy(struct ids *to, const struct ids *from)
{
	for (size_t i = 0; i < from->count; i++)
		ids_add(to, from->list[i]);
}

void ids_shuffle(struct ids *s)
{
	for (size_t i = s->count; i > 1; i--) {
		size_t k = (size_t)random() % i;
		char *id = s->list[i - 1];

		s->list[i - 1] = s->list[k];
		s->list[k] = id;
	}
}

void ids_clear(struct ids *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->list[i]);
	free(s->list);
	*s = (struct ids) { 0 };
}
