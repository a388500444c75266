#include "base/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/fnv.h"

/* Entries in order of insertion, with holes (key NULL) where one was removed; an open-addressed index of entry numbers
 * + 1 beside them. Both are rebuilt together when the entries run out. */
struct entry {
	char *key;
	void *value;
	uint64_t hash;
};

struct map {
	struct entry *entries;
	uint32_t *index;
	size_t used, cap; /* of entries, holes included; the index has 2 * cap places, a power of two */
	size_t count;
};

enum { FIRST_CAP = 8 };

/* Keys are UIDs, device ids and names, not chosen to collide by somebody who sees our memory. */
static uint64_t hash_of(const char *key)
{
	uint64_t h = FNV_BEGIN;

	for (; *key != '\0'; key++)
		h = fnv_step(h, (unsigned char)*key);
	return h;
}

struct map *map_new(void)
{
	return calloc(1, sizeof(struct map));
}

void map_free(struct map *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->used; i++)
		free(m->entries[i].key);
	free(m->entries);
	free(m->index);
	free(m);
}

static void index_put(uint32_t *index, size_t places, uint64_t hash, size_t entry)
{
	size_t at = (size_t)hash & (places - 1);

	while (index[at] != 0)
		at = (at + 1) & (places - 1);
	index[at] = (uint32_t)entry + 1;
}

static int rebuild(struct map *m)
{
	size_t cap = m->count * 2 < FIRST_CAP ? FIRST_CAP : m->cap;
	struct entry *entries;
	uint32_t *index;
	size_t n = 0;

	while (cap < m->count * 2)
		cap *= 2;
	entries = malloc(cap * sizeof *entries);
	index = calloc(cap * 2, sizeof *index);
	if (entries == NULL || index == NULL || cap > UINT32_MAX / 2) {
		free(entries);
		free(index);
		return -HM_ENOMEM;
	}
	for (size_t i = 0; i < m->used; i++) {
		if (m->entries[i].key == NULL)
			continue;
		entries[n] = m->entries[i];
		index_put(index, cap * 2, entries[n].hash, n);
		n++;
	}
	free(m->entries);
	free(m->index);
	m->entries = entries;
	m->index = index;
	m->used = n;
	m->cap = cap;
	return 0;
}

static struct entry *find(const struct map *m, const char *key, uint64_t hash)
{
	size_t places = m->cap * 2;

	if (places == 0)
		return NULL;
	for (size_t at = (size_t)hash & (places - 1); m->index[at] != 0; at = (at + 1) & (places - 1)) {
		struct entry *e = &m->entries[m->index[at] - 1];
		if (e->key != NULL && e->hash == hash && strcmp(e->key, key) == 0)
			return e;
	}
	return NULL;
}

int map_put(struct map *m, const char *key, void *value, void **old)
{
	uint64_t hash = hash_of(key);
	struct entry *e = find(m, key, hash);
	char *copy;

	if (old != NULL)
		*old = e != NULL ? e->value : NULL;
	if (e != NULL) {
		e->value = value;
		return 0;
	}
	copy = strdup(key);
	if (copy == NULL)
		return -HM_ENOMEM;
	if (m->used == m->cap && rebuild(m) < 0) {
		free(copy);
		return -HM_ENOMEM;
	}
	m->entries[m->used] = (struct entry) { copy, value, hash };
	index_put(m->index, m->cap * 2, hash, m->used);
	m->used++;
	m->count++;
	return 0;
}

void *map_get(const struct map *m, const char *key)
{
	struct entry *e = find(m, key, hash_of(key));

	return e != NULL ? e->value : NULL;
}

void *map_remove(struct map *m, const char *key)
{
	struct entry *e = find(m, key, hash_of(key));
	void *value;

	if (e == NULL)
		return NULL;
	value = e->value;
	free(e->key);
	*e = (struct entry) { 0 };
	m->count--;
	return value;
}

size_t map_count(const struct map *m)
{
	return m->count;
}

bool map_next(const struct map *m, size_t *at, const char **key, void **value)
{
	while (*at < m->used) {
		const struct entry *e = &m->entries[(*at)++];
		if (e->key == NULL)
			continue;
		if (key != NULL)
			*key = e->key;
		if (value != NULL)
			*value = e->value;
		return true;
	}
	return false;
}
