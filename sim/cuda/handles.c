#include "sim/cuda/handles.h"

#include <stdint.h>
#include <stdlib.h>

/* Open addressing with linear probing; a removal moves later entries back, so that there are no tombstones. */
struct entry {
	const void *object; /* NULL: free */
	enum cu_handle kind;
};
static struct entry *entries;
static size_t capacity, used; /* capacity: 0 or a power of 2 above used */

static size_t home(const void *object)
{
	return (size_t)(((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15ULL >> 20) & (capacity - 1);
}

static struct entry *find(const void *object)
{
	size_t i = home(object);

	while (entries[i].object != NULL && entries[i].object != object)
		i = (i + 1) & (capacity - 1);
	return &entries[i];
}

static bool grow(void)
{
	size_t old_capacity = capacity;
	struct entry *old = entries, *bigger = calloc(capacity > 0 ? 2 * capacity : 64, sizeof *bigger);

	if (bigger == NULL)
		return false;
	capacity = capacity > 0 ? 2 * capacity : 64;
	entries = bigger;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].object != NULL)
			*find(old[i].object) = old[i];
	free(old);
	return true;
}

bool cu_handle_add(const void *object, enum cu_handle kind)
{
	if (2 * (used + 1) > capacity && !grow())
		return false;
	*find(object) = (struct entry) { object, kind };
	used++;
	return true;
}

void cu_handle_remove(const void *object)
{
	if (capacity == 0 || object == NULL || find(object)->object == NULL)
		return;
	size_t hole = (size_t)(find(object) - entries), mask = capacity - 1;

	used--;
	for (size_t i = (hole + 1) & mask; entries[i].object != NULL; i = (i + 1) & mask)
		if (((i - home(entries[i].object)) & mask) >= ((i - hole) & mask)) {
			entries[hole] = entries[i];
			hole = i;
		}
	entries[hole].object = NULL;
}

bool cu_handle_is(const void *object, enum cu_handle kind)
{
	if (capacity == 0 || object == NULL)
		return false;
	const struct entry *e = find(object);

	return e->object != NULL && e->kind == kind;
}
