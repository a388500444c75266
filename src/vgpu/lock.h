/* Locks within a process, held for a few calls of the driver at most. 0 is free: a forked child, whose state is wiped,
 * finds them free. */
#ifndef HM_VGPU_LOCK_H
#define HM_VGPU_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

static inline void lock_take(_Atomic uint32_t *lock)
{
	while (atomic_exchange(lock, 1) != 0)
		sched_yield();
}

static inline void lock_release(_Atomic uint32_t *lock)
{
	atomic_store(lock, 0);
}

#endif
