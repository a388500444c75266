/* Opens the fake NVML and describes a node to it; for the tests of src/gpu and of what stands on it. */
#ifndef HM_TESTS_GPU_FAKE_SETUP_H
#define HM_TESTS_GPU_FAKE_SETUP_H

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "unit/gpu/fake_nvml.h"

/* The fake's state; the library stays loaded until the test ends. */
static inline struct fake *fake_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct fake *fake;

	if (library == NULL)
		fprintf(stderr, "%s\n", dlerror());
	assert(library != NULL);
	fake = dlsym(library, "fake");
	assert(fake != NULL);
	return fake;
}

/* count cards, 46,068 MiB each with 500 MiB reserved and 1,000 MiB used, on NUMA nodes 0 and 1 by turns, without
 * NVLinks. */
static inline void fake_node(struct fake *fake, unsigned count)
{
	int inits = fake->inits;

	memset(fake, 0, sizeof *fake);
	fake->inits = inits;
	fake->count = count;
	fake->ancestor = 50;
	for (unsigned i = 0; i < FAKE_CARDS; i++) {
		struct fake_card *c = &fake->cards[i];

		snprintf(c->uuid, sizeof c->uuid, "GPU-00000000-0000-0000-0000-%012u", i);
		snprintf(c->name, sizeof c->name, "NVIDIA L40S");
		snprintf(c->bus_id, sizeof c->bus_id, "00000000:%02X:00.0", 0x3a + i);
		c->bus = 0x3a + i;
		c->minor = i;
		c->total = 46068ull << 20;
		c->reserved = 500ull << 20;
		c->used = 1000ull << 20;
		c->numa_mask = 1ul << (i % 2);
		c->event_types = 1 | 2 | 8; /* single and double-bit ECC, Xid */
		c->action = -1;
		for (unsigned j = 0; j < FAKE_LINKS; j++)
			c->links[j].to = -3;
	}
}

static inline void fake_fault(struct fake *fake, const char *call, int card, int result)
{
	for (unsigned i = 0; i < FAKE_FAULTS; i++) {
		if (fake->faults[i].call != NULL)
			continue;
		fake->faults[i].call = call;
		fake->faults[i].card = card;
		fake->faults[i].result = result;
		return;
	}
	assert(0);
}

#endif
