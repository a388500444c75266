/* How long calls took, as a histogram of fixed bounds. */
#ifndef HM_BASE_LATENCY_H
#define HM_BASE_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* Upper bounds; one bucket more holds what is above. From an answer out of memory to the kubelet's 30 s for a start. */
#define LATENCY_BOUNDS_US                                                                                              \
	{                                                                                                              \
		100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000, 2500000, 10000000,      \
			30000000                                                                                       \
	}
enum { LATENCY_BOUNDS = 15 };

struct latency {
	uint64_t buckets[LATENCY_BOUNDS + 1]; /* each its own, not cumulative */
	uint64_t sum_us;
};

void latency_note(struct latency *l, uint64_t us);

#endif
