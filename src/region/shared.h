/* Access to the region's words. Every one goes through here, so that tests can stop a process, or let another one run,
 * between any two of them (REGION_STEP_HOOK, defined by tests/unit/region only). */
#ifndef HM_REGION_SHARED_H
#define HM_REGION_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef REGION_STEP_HOOK
extern void (*region_step_hook)(void);
static inline void shared_step(void)
{
	if (region_step_hook != NULL)
		region_step_hook();
}
#else
static inline void shared_step(void)
{
}
#endif

static inline uint64_t shared_load(const _Atomic uint64_t *p)
{
	shared_step();
	return atomic_load_explicit(p, memory_order_acquire);
}

static inline void shared_store(_Atomic uint64_t *p, uint64_t v)
{
	shared_step();
	atomic_store_explicit(p, v, memory_order_release);
}

/* On failure *expected becomes what stands there. */
static inline bool shared_cas(_Atomic uint64_t *p, uint64_t *expected, uint64_t v)
{
	shared_step();
	return atomic_compare_exchange_strong(p, expected, v);
}

static inline void shared_add(_Atomic uint64_t *p, uint64_t n)
{
	shared_step();
	atomic_fetch_add_explicit(p, n, memory_order_relaxed);
}

#endif
