#include "model/topology.h"

struct closeness topology_pair(const struct inventory *inv, size_t a, size_t b)
{
	struct card_link link = inventory_link(inv, a, b);
	int numa = inv->cards[a].numa_node;
	struct closeness c = { 0 };

	if (link.kind == LINK_NVLINK)
		c.nvlinks = link.nvlinks;
	/* An NVLinked pair says nothing of its PCIe path; its NUMA nodes still count. */
	c.numa_pairs = numa >= 0 ? numa == inv->cards[b].numa_node : link.kind > LINK_SYSTEM && link.kind < LINK_NVLINK;
	c.path = (unsigned)link.kind;
	return c;
}

struct closeness closeness_add(struct closeness a, struct closeness b)
{
	return (struct closeness) { a.nvlinks + b.nvlinks, a.numa_pairs + b.numa_pairs, a.path + b.path };
}

static int compare(unsigned a, unsigned b)
{
	return (a > b) - (a < b);
}

int closeness_compare(struct closeness a, struct closeness b)
{
	int by = compare(a.nvlinks, b.nvlinks);

	if (by == 0)
		by = compare(a.numa_pairs, b.numa_pairs);
	return by != 0 ? by : compare(a.path, b.path);
}
