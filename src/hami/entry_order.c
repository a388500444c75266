#include "hami/entry_order.h"

bool entry_is_filled(const struct pod_devices *d, size_t entry)
{
	const struct devices_entry *e = &d->entries[entry];

	for (size_t i = 0; i < e->count; i++)
		if (d->shares[e->first + i].uuid[0] != '\0')
			return true;
	return false;
}

size_t entry_order_written(const struct pod_devices *d)
{
	return d->entry_count - (d->entry_count > 0 && d->entries[d->entry_count - 1].count == 0);
}

/* The containers from `first` on, by position. */
static bool by_position(const struct pod_devices *d, const uint32_t *cards, size_t containers, size_t first,
			size_t *container_of)
{
	if (entry_order_written(d) != containers - first)
		return false;
	for (size_t i = 0; i < d->entry_count; i++) {
		container_of[i] = first + i;
		if (entry_is_filled(d, i) && cards[first + i] == 0)
			return false;
	}
	return true;
}

static size_t next_asking(const uint32_t *cards, size_t containers, size_t from)
{
	while (from < containers && cards[from] == 0)
		from++;
	return from;
}

/* The containers from `first` on that ask, one after another. */
static bool by_turn(const struct pod_devices *d, const uint32_t *cards, size_t containers, size_t first,
		    size_t *container_of)
{
	size_t next = next_asking(cards, containers, first);

	for (size_t i = 0; i < d->entry_count; i++) {
		container_of[i] = containers;
		if (!entry_is_filled(d, i))
			continue;
		if (next == containers)
			return false;
		container_of[i] = next;
		next = next_asking(cards, containers, next + 1);
	}
	return next == containers;
}

bool entry_order(const struct pod_devices *d, const uint32_t *cards, size_t containers, size_t init_count,
		 size_t *container_of)
{
	if (by_position(d, cards, containers, 0, container_of) || by_turn(d, cards, containers, 0, container_of) ||
	    by_position(d, cards, containers, init_count, container_of) ||
	    by_turn(d, cards, containers, init_count, container_of))
		return true;
	for (size_t i = 0; i < d->entry_count; i++)
		container_of[i] = containers + i;
	return false;
}
