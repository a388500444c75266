#include "base/latency.h"

#include "core/macros.h"

#include "harness/unit.h"

/* A bucket holds what is at most its bound, as Prometheus' "le" has it. */
static void a_bound_is_in_its_bucket(void **state)
{
	static const struct {
		uint64_t us;
		size_t bucket;
	} cases[] = {
		{ 0, 0 },    { 100, 0 },       { 101, 1 },       { 250, 1 },     { 251, 2 },
		{ 1000, 3 }, { 30000000, 14 }, { 30000001, 15 }, { 999999, 11 }, { UINT64_MAX / 2, 15 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct latency l = { 0 };

		latency_note(&l, cases[i].us);
		for (size_t k = 0; k <= LATENCY_BOUNDS; k++)
			assert_int_equal(l.buckets[k], k == cases[i].bucket);
		assert_int_equal(l.sum_us, cases[i].us);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_bound_is_in_its_bucket) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
