/* Launches that are measured: a pair of events each, in the order of the launches; one ring a context. All calls but
 * marks_lock are made with the ring's lock held. */
#ifndef HM_VGPU_MARKS_H
#define HM_VGPU_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "vgpu/estimate.h"
#include "vgpu/gate.h"

enum { MARKS = 32 };

struct throttle_mark {
	CUevent start, end;
	struct estimate *row;
	uint64_t at_ns; /* when it was launched */
	uint64_t estimate_ns;
	int64_t launched_ns; /* the gate's, when it was launched */
	uint32_t launches;   /* that it stands for */
};

struct throttle_ring {
	_Atomic uint64_t ctx; /* 0: nobody's */
	_Atomic uint32_t lock;
	struct vgpu_card *card;
	struct gate gate;
	unsigned first, pending; /* the oldest that is not finished, and how many */
	int last;                /* the last that was, + 1; 0: its events are in use again */
	struct throttle_mark marks[MARKS];
};

static inline bool marks_try_lock(struct throttle_ring *r)
{
	return atomic_exchange_explicit(&r->lock, 1, memory_order_acquire) == 0;
}

static inline void marks_unlock(struct throttle_ring *r)
{
	atomic_store_explicit(&r->lock, 0, memory_order_release);
}

/* Begins to measure on a stream that is not capturing; the ring's context is current. NULL: all are in use, or the
 * driver will not. */
struct throttle_mark *marks_begin(struct throttle_ring *r, CUstream stream, bool per_thread);
/* The launch is done, or was refused. */
void marks_end(struct throttle_ring *r, struct throttle_mark *m, CUstream stream, bool per_thread, bool launched);
/* Tells the gate what has finished. */
void marks_poll(struct throttle_ring *r, uint64_t now);
/* The context has ended, and its events with it: what they were to measure has ended by now. */
void marks_drop(struct throttle_ring *r, uint64_t now);

#endif
