#include "core/num.h"

#include <string.h>

#include "harness/unit.h"

static void accepts_digits_only(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		bool good;
		uint64_t value;
	} cases[] = {
		{ "0", 0, true, 0 },
		{ "007", 10, true, 7 },
		{ "10", 10, true, 10 },
		{ "11", 10, false, 0 },
		{ "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, false, 0 },
		{ "18446744073709551620", UINT64_MAX, false, 0 },
		{ "99999999999999999999999", UINT64_MAX, false, 0 },
		{ "00000000000000000000000000000001", UINT64_MAX, true, 1 },
		{ "", UINT64_MAX, false, 0 },
		{ " 1", UINT64_MAX, false, 0 },
		{ "1 ", UINT64_MAX, false, 0 },
		{ "+1", UINT64_MAX, false, 0 },
		{ "-1", UINT64_MAX, false, 0 },
		{ "0x10", UINT64_MAX, false, 0 },
		{ "1e3", UINT64_MAX, false, 0 },
		{ "1.0", UINT64_MAX, false, 0 },
		{ "3000MB", UINT64_MAX, false, 0 },
		{ "/", UINT64_MAX, false, 0 },
		{ ":", UINT64_MAX, false, 0 },
		{ "\xc2\xb2", UINT64_MAX, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint64_t v = 4711;
		bool good = num_u64_str(cases[i].text, cases[i].max, &v);

		if (good != cases[i].good)
			fail_msg("\"%s\" was %s", cases[i].text, good ? "accepted" : "refused");
		assert_int_equal(v, cases[i].good ? cases[i].value : 4711);
	}
	assert_false(num_u64_str(NULL, 1, &(uint64_t) { 0 }));
}

static void reads_only_the_bytes_it_was_given(void **state)
{
	char raw[2] = { '4', '2' };
	uint64_t v = 0;

	(void)state;
	assert_true(num_u64(raw, 2, 100, &v));
	assert_int_equal(v, 42);
	assert_true(num_u64(raw, 1, 100, &v));
	assert_int_equal(v, 4);
	assert_false(num_u64("1\0002", 3, 1000, &v));
}

static void sums_and_products_say_when_they_overflow(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_true(num_add(UINT64_MAX - 1, 1, &v));
	assert_int_equal(v, UINT64_MAX);
	assert_false(num_add(UINT64_MAX, 1, &v));
	assert_true(num_mul(UINT64_MAX / 3, 3, &v));
	assert_false(num_mul(UINT64_MAX / 3 + 1, 3, &v));
	assert_true(num_mul(UINT64_MAX, 0, &v));
	assert_int_equal(v, 0);
	assert_false(num_mul(1ull << 32, 1ull << 32, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_digits_only),
		cmocka_unit_test(reads_only_the_bytes_it_was_given),
		cmocka_unit_test(sums_and_products_say_when_they_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
