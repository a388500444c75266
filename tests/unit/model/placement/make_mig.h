/* Cards in MIG mode for tests: an A100 of 40 GB. */
#ifndef TESTS_MAKE_MIG_H
#define TESTS_MAKE_MIG_H

#include "make_node.h"

static inline void add_profile(struct node_state *n, const char *name, int32_t memory, int32_t cores, int32_t slices,
			       uint32_t size, const uint32_t *starts, size_t count)
{
	struct card_profile p = { .memory_mib = memory, .cores = cores, .slices = slices };
	struct mig_placement places[8];
	struct hm_err e;

	snprintf(p.name, sizeof p.name, "%s", name);
	for (size_t i = 0; i < count; i++)
		places[i] = (struct mig_placement) { starts[i], size };
	if (node_state_add_profile(n, &p, places, count, &e) < 0)
		fail_msg("%s", e.msg);
}

/* In an order that is not the one to try. */
static inline void add_mig_card(struct node_state *n, unsigned i)
{
	struct node_card c = make_card(i);

	c.mode = "mig";
	c.count = 7;
	c.memory_mib = 40960;
	c.type = "NVIDIA A100-SXM4-40GB";
	add_card(n, c);
	add_profile(n, "7g.40gb", 40320, 100, 7, 8, (const uint32_t[]) { 0 }, 1);
	add_profile(n, "4g.20gb", 20096, 58, 4, 4, (const uint32_t[]) { 0 }, 1);
	add_profile(n, "3g.20gb", 20096, 43, 3, 4, (const uint32_t[]) { 0, 4 }, 2);
	add_profile(n, "1g.5gb", 4864, 15, 1, 1, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6 }, 7);
	add_profile(n, "2g.10gb", 9984, 29, 2, 2, (const uint32_t[]) { 4, 0, 2 }, 3);
}

#endif
