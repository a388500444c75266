/* Inventories made by hand for the tests of model. */
#ifndef HM_TESTS_MODEL_MAKE_INVENTORY_H
#define HM_TESTS_MODEL_MAKE_INVENTORY_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/inventory.h"

static inline struct inventory *make_inventory(size_t count, uint64_t memory_mib)
{
	struct inventory *inv = inventory_new();

	assert(inv != NULL);
	inv->cards = calloc(count, sizeof *inv->cards);
	inv->links = calloc(count * count, sizeof *inv->links);
	assert(inv->cards != NULL && inv->links != NULL);
	inv->count = count;
	for (size_t i = 0; i < count; i++) {
		struct card *c = &inv->cards[i];

		snprintf(c->uuid, sizeof c->uuid, "GPU-00000000-0000-0000-0000-%012zu", i);
		snprintf(c->model, sizeof c->model, "Test T%zu", i);
		c->index = c->minor = (unsigned)i;
		c->memory_bytes = memory_mib << 20;
		c->numa_node = -1;
	}
	return inv;
}

static inline void set_link(struct inventory *inv, size_t a, size_t b, enum link_kind kind, unsigned nvlinks)
{
	struct card_link link = { kind, (uint8_t)nvlinks };

	inv->links[a * inv->count + b] = inv->links[b * inv->count + a] = link;
}

#endif
