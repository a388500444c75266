#include "vgpu/estimate.h"

#include <stdatomic.h>
#include <stddef.h>

#define LOAD(p) atomic_load_explicit(p, memory_order_relaxed)
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

uint64_t estimate_key(const void *function, uint64_t blocks, uint64_t block_threads)
{
	uint64_t key = mix((uintptr_t)function + mix(blocks * 1024 + block_threads));

	return key != 0 ? key : 1;
}

struct estimate *estimate_find(struct estimates *all, uint64_t key)
{
	struct estimate *row = NULL;

	for (unsigned i = 0; i < ESTIMATE_PROBES; i++) {
		uint64_t none = 0, seen;

		row = &all->rows[(key + i) % ESTIMATE_ROWS];
		seen = LOAD(&row->key);
		if (seen == key)
			return row;
		if (seen == 0 && (atomic_compare_exchange_strong(&row->key, &none, key) || none == key))
			return row;
	}
	STORE(&row->key, key);
	STORE(&row->ns, 0);
	STORE(&row->seen, 0);
	STORE(&row->skipped, 0);
	return row;
}

bool estimate_wants_mark(struct estimates *all, struct estimate *row, uint32_t *weight)
{
	uint64_t unmarked = LOAD(&all->unmarked_ns) + LOAD(&row->ns);
	uint32_t launches = LOAD(&row->skipped) + 1;

	if (LOAD(&row->seen) >= ESTIMATE_LEARN && unmarked < ESTIMATE_MARK_NS && launches < ESTIMATE_UNMEASURED) {
		STORE(&all->unmarked_ns, unmarked);
		STORE(&row->skipped, launches);
		return false;
	}
	STORE(&all->unmarked_ns, 0);
	STORE(&row->skipped, 0);
	*weight = LOAD(&row->seen) >= ESTIMATE_LEARN ? launches : 1;
	return true;
}

void estimate_learn(struct estimate *row, uint64_t span_ns)
{
	uint64_t old = LOAD(&row->ns);

	STORE(&row->ns, old == 0 ? (span_ns != 0 ? span_ns : 1) : (7 * old + 3 * span_ns + 5) / 10);
	if (LOAD(&row->seen) < ESTIMATE_LEARN)
		STORE(&row->seen, LOAD(&row->seen) + 1);
}
