#include "model/inventory.h"

#include <string.h>

struct inventory *inventory_new(void)
{
	struct inventory *inv = calloc(1, sizeof *inv);

	return inv;
}

void inventory_free(struct inventory *inv)
{
	if (inv == NULL)
		return;
	for (size_t i = 0; i < inv->skipped_count; i++)
		free(inv->skipped[i]);
	free(inv->skipped);
	free(inv->links);
	free(inv->cards);
	free(inv);
}

const struct card *inventory_find(const struct inventory *inv, const char *uuid)
{
	for (size_t i = 0; i < inv->count; i++) {
		if (strcmp(inv->cards[i].uuid, uuid) == 0)
			return &inv->cards[i];
	}
	return NULL;
}

struct card_link inventory_link(const struct inventory *inv, size_t a, size_t b)
{
	if (a >= inv->count || b >= inv->count || inv->links == NULL)
		return (struct card_link) { LINK_NONE, 0 };
	return inv->links[a * inv->count + b];
}

static bool card_equal(const struct card *a, const struct card *b)
{
	return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->model, b->model) == 0 &&
	       strcmp(a->pci_bus_id, b->pci_bus_id) == 0 && a->index == b->index && a->minor == b->minor &&
	       a->memory_bytes == b->memory_bytes && a->reserved_bytes == b->reserved_bytes &&
	       a->numa_node == b->numa_node && a->mig_enabled == b->mig_enabled && mig_card_equal(&a->mig, &b->mig);
}

static bool links_equal(const struct inventory *a, const struct inventory *b)
{
	for (size_t i = 0; i < a->count; i++) {
		for (size_t j = 0; j < a->count; j++) {
			struct card_link x = inventory_link(a, i, j), y = inventory_link(b, i, j);

			if (x.kind != y.kind || x.nvlinks != y.nvlinks || x.path != y.path || x.direct != y.direct ||
			    x.switched != y.switched)
				return false;
		}
	}
	return true;
}

static bool skipped_equal(const struct inventory *a, const struct inventory *b)
{
	if (a->skipped_count != b->skipped_count)
		return false;
	for (size_t i = 0; i < a->skipped_count; i++) {
		if (strcmp(a->skipped[i], b->skipped[i]) != 0)
			return false;
	}
	return true;
}

bool inventory_equal(const struct inventory *a, const struct inventory *b)
{
	if (a->count != b->count || a->cuda_version != b->cuda_version ||
	    strcmp(a->driver_version, b->driver_version) != 0)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!card_equal(&a->cards[i], &b->cards[i]))
			return false;
	}
	return links_equal(a, b) && skipped_equal(a, b);
}
