#include "base/rate.h"

#include "core/macros.h"

void rate_init(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_ms)
{
	*r = (struct rate) { per_second, burst, burst * 1000, now_ms };
}

bool rate_take(struct rate *r, uint64_t now_ms)
{
	uint64_t full = r->burst * 1000;

	if (now_ms > r->at_ms) {
		/* More than the time that fills an empty bucket counts as that time: no overflow. */
		uint64_t passed = HM_MIN(now_ms - r->at_ms, full / r->per_second + 1);

		r->tokens_milli = HM_MIN(full, r->tokens_milli + passed * r->per_second);
		r->at_ms = now_ms;
	}
	if (r->tokens_milli < 1000)
		return false;
	r->tokens_milli -= 1000;
	return true;
}
