#include "base/latency.h"

void latency_note(struct latency *l, uint64_t us)
{
	static const uint64_t bounds[LATENCY_BOUNDS] = LATENCY_BOUNDS_US;
	size_t i = 0;

	while (i < LATENCY_BOUNDS && us > bounds[i])
		i++;
	l->buckets[i]++;
	l->sum_us += us;
}
