#include "model/placement/node_order.h"

#include <string.h>

double node_score(const struct node_state *n)
{
	const struct card_use *all = &n->totals.all, *used = &n->totals.used;

	if (all->slots <= 0 || all->cores <= 0 || all->memory_mib <= 0)
		return 0;
	return 10 * ((double)used->slots / (double)all->slots + (double)used->cores / (double)all->cores +
		     (double)used->memory_mib / (double)all->memory_mib);
}

static double fullest(const struct node_state *n)
{
	return -node_score(n);
}

const struct node_order *node_order_find(const char *policy)
{
	static const struct node_order binpack = { .name = "binpack", .before = fullest };
	static const struct node_order spread = { .name = "spread", .before = node_score };

	return policy != NULL && strcmp(policy, spread.name) == 0 ? &spread : &binpack;
}
