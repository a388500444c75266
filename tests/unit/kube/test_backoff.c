#include "kube/backoff.h"

#include "harness/unit.h"

static void doubles_between_its_bounds(void **state)
{
	static const uint32_t least[] = { 250, 500, 1000, 2000, 4000, 8000, 15000, 15000 };
	static const uint32_t most[] = { 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
	struct kube_backoff low = { 500, 30000, 0 }, high = low, middle = low;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		uint32_t between = kube_backoff_next(&middle, 0x80000000u);

		assert_int_equal(kube_backoff_next(&low, 0), least[i]);
		assert_int_equal(kube_backoff_next(&high, UINT32_MAX), most[i]);
		assert_true(between > least[i] && between < most[i]);
	}
	kube_backoff_reset(&low);
	assert_int_equal(kube_backoff_next(&low, 0), 250);
}

static void stays_at_its_bound_for_ever(void **state)
{
	struct kube_backoff b = { 4000000000u, 4000000000u, UINT32_MAX - 1 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(kube_backoff_next(&b, UINT32_MAX), 4000000000u);
	assert_int_equal(b.tries, UINT32_MAX);
}

static void random_bits_differ(void **state)
{
	uint32_t first = kube_random();
	unsigned same = 0;

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		same += kube_random() == first;
	assert_true(same < 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles_between_its_bounds),
		cmocka_unit_test(stays_at_its_bound_for_ever),
		cmocka_unit_test(random_bits_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
