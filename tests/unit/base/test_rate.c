#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rate.h"

static unsigned take_all(struct rate *r, uint64_t now_ms)
{
	unsigned n = 0;

	while (n < 100000 && rate_take(r, now_ms))
		n++;
	return n;
}

static void test_burst_then_average(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 200, 1000, 1000, 5000);
	assert_int_equal(take_all(&r, 5000), 1000);
	assert_int_equal(take_all(&r, 5000), 0);
	assert_int_equal(take_all(&r, 5004), 0); /* 0.8 of a token */
	assert_int_equal(take_all(&r, 5005), 1);
	assert_int_equal(take_all(&r, 6005), 200);
	assert_int_equal(take_all(&r, 16005), 1000); /* never more than the burst */
}

static void test_rarely(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 1, 300000, 25, 7);
	assert_int_equal(take_all(&r, 7), 25);
	assert_int_equal(take_all(&r, 300006), 0);
	assert_int_equal(take_all(&r, 300007), 1);
	assert_int_equal(take_all(&r, 750007), 1);
	assert_int_equal(take_all(&r, 900007), 1); /* the half that was left over counts */
	assert_int_equal(take_all(&r, 90000000), 25);
}

static void test_strange_clocks(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 200, 1000, 1000, 5000);
	assert_int_equal(take_all(&r, 5000), 1000);
	assert_int_equal(take_all(&r, 4000), 0); /* back: nothing is won */
	assert_int_equal(take_all(&r, 5000), 0);
	assert_int_equal(take_all(&r, UINT64_MAX), 1000);
	assert_int_equal(take_all(&r, UINT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_then_average),
		cmocka_unit_test(test_rarely),
		cmocka_unit_test(test_strange_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
