/* The compute limit in this process: which gate a launch goes through, waiting for it, and measuring by events of the
 * driver what the work took. One ring of marks and one gate for each context.
 *
 * Waits are between launches alone, with no lock held, and never without an end: work that was launched may wait for
 * work that is not (collectives, two streams), so that no completion may be a condition for ever. */
#ifndef HM_VGPU_THROTTLE_H
#define HM_VGPU_THROTTLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "contract/region_layout.h"
#include "vgpu/estimate.h"
#include "vgpu/state.h"

/* What each launch looks at first: the words of so many cards. None asks to hold: straight to the driver, as after the
 * first launch of a process without a limit. Where such a process may have to wait for containers of higher priority,
 * they are the region's. There is room for HM_MAX_CARDS wherever this leads. */
extern const struct region_compute *_Atomic throttle_cards;
extern _Atomic uint32_t throttle_card_count;

static inline bool throttle_is_off(void)
{
	const struct region_compute *cards = atomic_load_explicit(&throttle_cards, memory_order_relaxed);
	uint32_t count = atomic_load_explicit(&throttle_card_count, memory_order_relaxed);
	uint64_t any = 0;

	for (uint32_t i = 0; i < count; i++)
		any |= atomic_load_explicit(&cards[i].hold_until_ns, memory_order_relaxed);
	return any == 0;
}

struct throttle_ring;

struct launch {
	struct vgpu *v;
	struct throttle_ring *ring; /* NULL: not counted */
	struct throttle_mark *mark; /* NULL: not measured */
	struct estimate *row;
	uint64_t estimate_ns;
	CUstream stream;
	bool per_thread;
};

/* Before a launch, whose kind `key` (estimate_key) says: waits for its turn, and begins to measure it. errno is kept.
 */
void throttle_before(struct launch *l, uint64_t key, CUstream stream, bool per_thread);
/* After it; returns rc. */
CUresult throttle_after(struct launch *l, CUresult rc);
/* The program has waited for the card, or is about to end what it has there: what has finished is charged. */
void throttle_settle(void);
/* A context has ended, and its events with it. */
void throttle_forget(struct vgpu *v, uint64_t ctx);

#endif
