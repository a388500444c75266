#include "region/alpha.h"

#include <stdbool.h>

#include "core/macros.h"
#include "region/bucket.h"

#define ALPHA_LEAST_NS 1e6 /* measured before alpha says anything */
#define ALPHA_MOST 1e5     /* spans in the time of a sample, 1,000 processes' long launches: beyond it is a scribble */

void alpha_note(struct alpha *a, uint64_t now, uint64_t spans_ns)
{
	unsigned i = a->count++ % ALPHA_HISTORY;

	a->history[i].at_ns = now;
	a->history[i].spans_ns = spans_ns;
}

/* The spans measured until `at`, between the two notes around it. False: too long ago, or not noted yet. */
static bool spans_until(const struct alpha *a, uint64_t at, double *out)
{
	unsigned oldest = a->count > ALPHA_HISTORY ? a->count - ALPHA_HISTORY : 0;

	for (unsigned i = a->count; i-- > oldest;) {
		unsigned here = i % ALPHA_HISTORY, after = (i + 1) % ALPHA_HISTORY;
		uint64_t from = a->history[here].at_ns, to;
		double grown;

		if (from > at)
			continue;
		*out = 0;
		if (i + 1 == a->count) {
			*out = (double)a->history[here].spans_ns;
			return from == at;
		}
		to = a->history[after].at_ns;
		grown = (double)(int64_t)(a->history[after].spans_ns - a->history[here].spans_ns);
		*out = (double)a->history[here].spans_ns + grown * (double)(at - from) / (double)(to - from);
		return true;
	}
	return false;
}

/* exp(-x) without libm; exact enough for x of 0 to some 10, and nothing beyond. */
static double decay(double x)
{
	double base, result;

	x = HM_MIN(x, 20.0);
	base = 1 - x / 64 + x * x / 8192;
	result = base;
	for (int i = 0; i < 6; i++)
		result *= result;
	return result;
}

/* What a bucket would not believe anyway would only bring the sum to its end. */
static int64_t error_of(double ns)
{
	int64_t part = HM_MIN((int64_t)(ns * ALPHA_ERROR_PART), BUCKET_ERROR_NS);

	return HM_MAX(part, -BUCKET_ERROR_NS);
}

static void take(struct alpha *a, uint64_t from_ns, uint64_t to_ns, double used, double raw)
{
	double keep = decay((double)(to_ns - HM_MIN(a->sampled_ns, from_ns)) / (double)ALPHA_TAU_NS), ratio;

	a->sampled_ns = to_ns;
	a->used = a->used * keep + used;
	a->raw = a->raw * keep + raw;
	if (a->value != 0)
		a->error_ns += error_of(used - raw * (double)a->value / BUCKET_ALPHA_ONE);
	if (a->raw < ALPHA_LEAST_NS)
		return;
	ratio = HM_MAX(a->used / a->raw * BUCKET_ALPHA_ONE, (double)BUCKET_ALPHA_MIN);
	a->value = (uint64_t)HM_MIN(ratio, (double)BUCKET_ALPHA_MAX);
}

void alpha_sample(struct alpha *a, uint64_t from_ns, uint64_t to_ns, uint64_t used_ns)
{
	double before, after, raw;

	if (to_ns <= from_ns || !spans_until(a, from_ns, &before) || !spans_until(a, to_ns, &after))
		return;
	raw = HM_MAX(after - before, 0.0);
	if (raw > (double)(to_ns - from_ns) * ALPHA_MOST)
		alpha_forget(a);
	else
		take(a, from_ns, to_ns, (double)used_ns, raw);
}

void alpha_sample_alone(struct alpha *a, uint64_t from_ns, uint64_t to_ns, uint64_t used_ns)
{
	if (to_ns > from_ns)
		take(a, from_ns, to_ns, (double)used_ns, (double)used_ns);
}

void alpha_forget(struct alpha *a)
{
	a->used = a->raw = 0;
	a->value = 0;
}
