/* Waits that double, with jitter, so that a thousand nodes do not come back in the same millisecond. Reads no clock. */
#ifndef HM_KUBE_BACKOFF_H
#define HM_KUBE_BACKOFF_H

#include <stdint.h>

struct kube_backoff {
	uint32_t first_ms, max_ms;
	uint32_t tries; /* since the last success */
};

/* The next wait: half to all of first_ms * 2^tries, of max_ms at most. `random` is any 32 random bits. */
uint32_t kube_backoff_next(struct kube_backoff *b, uint32_t random);
void kube_backoff_reset(struct kube_backoff *b);

/* 32 bits of the kernel's, for jitter. */
uint32_t kube_random(void);

#endif
