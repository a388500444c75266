#include "base/rate.h"

#include "core/macros.h"

void rate_init(struct rate *r, uint64_t tokens, uint64_t each_ms, uint64_t burst, uint64_t now_ms)
{
	*r = (struct rate) { tokens, each_ms, burst, burst * each_ms, now_ms };
}

bool rate_take(struct rate *r, uint64_t now_ms)
{
	uint64_t full = r->burst * r->each_ms;

	if (now_ms > r->at_ms) {
		/* More than the time that fills an empty bucket counts as that time: no overflow. */
		uint64_t passed = HM_MIN(now_ms - r->at_ms, full / r->tokens + 1);

		r->parts = HM_MIN(full, r->parts + passed * r->tokens);
		r->at_ms = now_ms;
	}
	if (r->parts < r->each_ms)
		return false;
	r->parts -= r->each_ms;
	return true;
}
