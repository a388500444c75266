/* May this process launch now? The shared bucket (region/bucket.h), a small credit taken from it ahead, so that most
 * launches touch no shared word, and a bound on how far the host runs ahead of the card. One gate a card and process;
 * no clock: `now` (CLOCK_MONOTONIC, ns) is passed in, and nobody waits here. */
#ifndef HM_VGPU_GATE_H
#define HM_VGPU_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/macros.h"
#include "region/bucket.h"

#define GATE_AHEAD_NS INT64_C(20000000) /* estimated work launched and not known to be finished */
#define GATE_CREDIT_NS INT64_C(500000)  /* taken from the bucket at once */
#define GATE_UNKNOWN_NS INT64_C(500000) /* what a kernel never seen before is charged until it is measured */
#define GATE_POLL_NS UINT64_C(200000)   /* while the host is too far ahead */

struct gate {
	struct region_compute *shared;
	unsigned share; /* percent, 1 to 99 */
	_Atomic int64_t credit_ns;
	_Atomic int64_t taken_ns; /* estimates let through, ever, and the credit: one word less to write in gate_pass */
	_Atomic int64_t done_ns;  /* of those let through, known to be finished */
};

/* Estimates let through, ever. */
static inline int64_t gate_launched(const struct gate *g)
{
	return atomic_load_explicit(&g->taken_ns, memory_order_relaxed) -
	       atomic_load_explicit(&g->credit_ns, memory_order_relaxed);
}

/* What a launch counts for until it is measured. 0: never seen. */
static inline int64_t gate_charge(uint64_t estimate_ns)
{
	return estimate_ns != 0 ? (int64_t)estimate_ns : GATE_UNKNOWN_NS;
}

/* And against running ahead: one of unknown length counts as the whole bound, so that a first huge one cannot bring a
 * thousand along. */
static inline int64_t gate_weight(uint64_t estimate_ns)
{
	return estimate_ns != 0 ? (int64_t)estimate_ns : GATE_AHEAD_NS;
}

static inline bool gate_has_room(const struct gate *g, int64_t weight)
{
	int64_t out = gate_launched(g) - atomic_load_explicit(&g->done_ns, memory_order_relaxed);

	return out <= 0 || out + weight <= GATE_AHEAD_NS;
}

/* The way of most launches: from credit, without a clock. True: launch. */
static inline bool gate_pass(struct gate *g, uint64_t estimate_ns)
{
	int64_t charge = (int64_t)estimate_ns;

	if (estimate_ns == 0 || atomic_load_explicit(&g->credit_ns, memory_order_relaxed) < charge ||
	    !gate_has_room(g, charge))
		return false;
	if (atomic_fetch_sub_explicit(&g->credit_ns, charge, memory_order_relaxed) < charge) {
		atomic_fetch_add_explicit(&g->credit_ns, charge, memory_order_relaxed); /* another thread took it */
		return false;
	}
	return true;
}

/* 0: launch. Else ask again after so many nanoseconds, finished work having been told by gate_done. crowded: nothing
 * has finished for so long that what was launched may wait for this launch; it may then run ahead. */
uint64_t gate_ask(struct gate *g, uint64_t now, uint64_t estimate_ns, bool crowded);

/* The work of a launch that cannot wait any longer: charged, let through. */
void gate_force(struct gate *g, uint64_t now, uint64_t estimate_ns);
/* The driver refused a launch that had passed. */
void gate_cancel(struct gate *g, uint64_t estimate_ns);

/* A measured launch has finished: `estimate_ns` it was taken for, `span_ns` it took, `launches` it stands for, and
 * `launched_ns` stood at this when it had been launched: all before it is finished too. */
void gate_done(struct gate *g, uint64_t now, uint64_t estimate_ns, uint64_t span_ns, uint32_t launches,
	       int64_t launched_ns);
/* Nothing that was launched is being watched: the rest is too small to count. */
void gate_idle(struct gate *g);

#endif
