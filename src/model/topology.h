/* How close cards are to one another: NVLink first, then NUMA, then the PCIe path. */
#ifndef HM_MODEL_TOPOLOGY_H
#define HM_MODEL_TOPOLOGY_H

#include <stddef.h>

#include "model/inventory.h"

/* Of a set of cards: sums over its pairs. Larger is closer, the members in this order. */
struct closeness {
	unsigned nvlinks;    /* NVLinks between them */
	unsigned numa_pairs; /* pairs on one NUMA node */
	unsigned path;       /* enum link_kind, the slower the path the smaller */
};

struct closeness topology_pair(const struct inventory *inv, size_t a, size_t b);
struct closeness closeness_add(struct closeness a, struct closeness b);
/* > 0: a is closer; 0: the same. */
int closeness_compare(struct closeness a, struct closeness b);

#endif
