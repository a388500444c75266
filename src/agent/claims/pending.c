#include "agent/claims/pending.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct pending {
	struct pending_item *items; /* oldest first */
	size_t count, cap;
};

static void item_fini(struct pending_item *item)
{
	for (size_t i = 0; i < item->id_count; i++)
		free(item->ids[i]);
	free(item->ids);
	*item = (struct pending_item) { 0 };
}

struct pending *pending_new(void)
{
	return calloc(1, sizeof(struct pending));
}

void pending_free(struct pending *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->count; i++)
		item_fini(&p->items[i]);
	free(p->items);
	free(p);
}

static void remove_at(struct pending *p, size_t at)
{
	item_fini(&p->items[at]);
	memmove(&p->items[at], &p->items[at + 1], (p->count - at - 1) * sizeof *p->items);
	p->count--;
}

int pending_add(struct pending *p, uint64_t number, const char *const *ids, size_t count, uint64_t now_ms,
		struct hm_err *e)
{
	struct pending_item item = { .number = number, .since_ms = now_ms, .ids = calloc(count + 1, sizeof *item.ids) };
	bool ok = item.ids != NULL;

	for (; ok && item.id_count < count; item.id_count += ok) {
		item.ids[item.id_count] = strdup(ids[item.id_count]);
		ok = item.ids[item.id_count] != NULL;
	}
	if (ok && p->count == PENDING_MAX)
		remove_at(p, 0);
	if (!ok || !HM_PUSH(p->items, p->count, p->cap, item)) {
		item_fini(&item);
		return hm_err_set(e, HM_ENOMEM, "remember an Allocate call");
	}
	return 0;
}

void pending_remove(struct pending *p, uint64_t number)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i].number == number) {
			remove_at(p, i);
			return;
		}
}

size_t pending_count(const struct pending *p)
{
	return p->count;
}

const struct pending_item *pending_at(const struct pending *p, size_t i)
{
	return &p->items[i];
}

bool pending_has_set(const struct pending_item *item, const char *const *ids, size_t count)
{
	if (item->id_count != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t k = 0; k < count && !found; k++)
			found = strcmp(item->ids[k], ids[i]) == 0;
		if (!found)
			return false;
	}
	return true;
}
