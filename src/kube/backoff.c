#include "kube/backoff.h"

#include <sys/random.h>

#include "core/macros.h"

uint32_t kube_backoff_next(struct kube_backoff *b, uint32_t random)
{
	uint32_t doublings = HM_MIN(b->tries, 31U);
	uint64_t wait = HM_MIN((uint64_t)b->first_ms << doublings, (uint64_t)b->max_ms);

	b->tries += b->tries < UINT32_MAX;
	return (uint32_t)(wait / 2 + (wait - wait / 2) * (uint64_t)random / UINT32_MAX);
}

void kube_backoff_reset(struct kube_backoff *b)
{
	b->tries = 0;
}

uint32_t kube_random(void)
{
	uint32_t v = 0;

	/* Only a kernel before 3.17 or a seccomp rule refuses; then there is no jitter. */
	if (getrandom(&v, sizeof v, GRND_NONBLOCK) != sizeof v)
		return UINT32_MAX;
	return v;
}
