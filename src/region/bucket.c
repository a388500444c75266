#include "region/bucket.h"

#include "core/macros.h"
#include "region/shared.h"

/* Anyone in the container can write these words. */
static uint64_t alpha_of(const struct region_compute *c, uint64_t now)
{
	uint64_t alpha = shared_load(&c->alpha), until = shared_load(&c->alpha_until_ns);

	if (alpha == 0 || (until != 0 && !bucket_is_ahead(until, now)))
		return BUCKET_ALPHA_ONE;
	alpha = HM_MAX(alpha, (uint64_t)BUCKET_ALPHA_MIN);
	return HM_MIN(alpha, (uint64_t)BUCKET_ALPHA_MAX);
}

/* How far a charge moves the zero. More than an hour of GPU time is no charge but a scribble. */
static uint64_t shift_of(const struct region_compute *c, unsigned share, uint64_t now, uint64_t raw_ns)
{
	raw_ns = HM_MIN(raw_ns, UINT64_C(3600000000000));
	return (raw_ns * alpha_of(c, now) / BUCKET_ALPHA_ONE) * 100 / share;
}

/* The zero as it counts now: a full bucket does not grow, and a time beyond all debt is of another boot, or nonsense.
 */
static uint64_t zero_at(uint64_t stored, unsigned share, uint64_t now)
{
	uint64_t full = BUCKET_CAP_NS * 100 / share;
	uint64_t oldest = now > full ? now - full : 0;

	if (stored > now && stored - now > BUCKET_DEBT_NS)
		return now;
	return HM_MAX(stored, oldest);
}

/* Moves the zero by a charge, or back. */
static void move(struct region_compute *c, unsigned share, uint64_t now, uint64_t shift, bool back)
{
	uint64_t seen = shared_load(&c->zero_ns), zero;

	do {
		zero = zero_at(seen, share, now);
		if (back)
			zero = zero > shift ? zero - shift : 0;
		else
			zero = HM_MIN(zero + shift, now + BUCKET_DEBT_NS);
	} while (!shared_cas(&c->zero_ns, &seen, zero));
}

/* Whoever moves settled_ns ahead does the charging; should it be killed in between, one correction is lost. */
static void take_over_error(struct region_compute *c, unsigned share, uint64_t now)
{
	uint64_t error = shared_load(&c->error_ns), settled = shared_load(&c->settled_ns);
	int64_t more = (int64_t)(error - settled);

	if (HM_LIKELY(more == 0) || !shared_cas(&c->settled_ns, &settled, error))
		return;
	if (more > -BUCKET_ERROR_NS && more < BUCKET_ERROR_NS)
		move(c, share, now, (uint64_t)(more < 0 ? -more : more) * 100 / share, more < 0);
}

uint64_t bucket_take(struct region_compute *c, unsigned share, uint64_t now, uint64_t raw_ns)
{
	uint64_t shift = shift_of(c, share, now, raw_ns), seen, zero;

	take_over_error(c, share, now);
	seen = shared_load(&c->zero_ns);
	do {
		zero = zero_at(seen, share, now);
		if (zero >= now)
			return zero - now + 1;
	} while (!shared_cas(&c->zero_ns, &seen, HM_MIN(zero + shift, now + BUCKET_DEBT_NS)));
	shared_add(&c->spans_ns, raw_ns);
	return 0;
}

void bucket_settle(struct region_compute *c, unsigned share, uint64_t now, int64_t raw_ns)
{
	move(c, share, now, shift_of(c, share, now, raw_ns < 0 ? -(uint64_t)raw_ns : (uint64_t)raw_ns), raw_ns < 0);
	shared_add(&c->spans_ns, (uint64_t)raw_ns);
}
