/* What the driver takes for a process without being asked for memory: contexts, code and globals of modules, whatever a
 * runtime allocates behind our back. Charged by measurement: the driver's figure of this process (NVML's list of
 * compute processes) less what we know of.
 *
 * Where that cannot be had (no NVML, a card that lists no processes, a list too long), nothing is charged. */
#ifndef HM_VGPU_OVERHEAD_H
#define HM_VGPU_OVERHEAD_H

#include <stdbool.h>

#include "abi/cuda.h"
#include "vgpu/state.h"

enum { OVERHEAD_LINES = 256 };

struct overhead {
	struct vgpu *v;         /* NULL: nothing is measured */
	struct vgpu_card *card; /* NULL: nothing may be allocated there */
	bool unmeasured;        /* the driver does not list its processes */
	unsigned count;         /* lines that were there before */
	uint32_t before[OVERHEAD_LINES];
};

/* Before a context is made on the device. */
void overhead_before(struct overhead *o, CUdevice device);
/* After it was made. False: over the limit, nothing was charged: the caller ends the context, then calls
 * overhead_settle. */
bool overhead_after(struct overhead *o);

/* After code was loaded on the current device. False as above. */
bool overhead_grew(void);

/* Code may come without a call that we see: a driver loads lazily, at a function's first launch, and a launch is not
 * the place to measure. From when a function is handed out, for 10 s, each allocation and each question for memory
 * measures first (overhead_catch_up), for at most 2 % of the time: 49 times as long as a measurement took there is no
 * other. What is found is charged, limit or not. */
void overhead_expect(struct vgpu *v);
void overhead_measure_expected(struct vgpu *v);
static inline void overhead_catch_up(struct vgpu *v)
{
	if (HM_UNLIKELY(atomic_load_explicit(&v->expect_until_ns, memory_order_relaxed) != 0))
		overhead_measure_expected(v);
}

/* Something ended: charges what is left. Touches only cards that were measured before. */
void overhead_settle(struct vgpu *v);

#endif
