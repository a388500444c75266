#include "sim/cuda/granules.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

enum { COUNT = 300, ROUNDS = 20000 };

/* The model: for each granule the number of the allocation that holds it, 0 for none. */
static unsigned model[COUNT];

static size_t model_first_fit(size_t n)
{
	size_t run = 0;

	for (size_t i = 0; i < COUNT; i++) {
		run = model[i] == 0 ? run + 1 : 0;
		if (run == n)
			return i + 1 - n;
	}
	return SIZE_MAX;
}

static unsigned random_below(unsigned n)
{
	static unsigned long long seed = 7;

	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % n;
}

static void compare(const struct granules *g)
{
	size_t used = 0;

	for (size_t i = 0; i < COUNT; i++) {
		size_t n = 0, start = granules_find(g, i, &n), first = i, end = i;

		if (model[i] == 0) {
			assert_int_equal(start, SIZE_MAX);
			continue;
		}
		used++;
		while (first > 0 && model[first - 1] == model[i])
			first--;
		while (end < COUNT && model[end] == model[i])
			end++;
		assert_int_equal(start, first);
		assert_int_equal(n, end - first);
	}
	assert_int_equal(g->used, used);
}

static void as_the_model_does(void **state HM_UNUSED)
{
	struct granules g;
	unsigned serial = 0;

	memset(model, 0, sizeof model);
	assert_true(granules_init(&g, COUNT));
	for (int round = 0; round < ROUNDS; round++) {
		size_t at = random_below(COUNT);

		if (model[at] == 0 || random_below(3) > 0) {
			size_t n = 1 + random_below(random_below(8) == 0 ? COUNT : 12), want = model_first_fit(n);

			assert_int_equal(granules_take(&g, n), want);
			serial++;
			for (size_t i = 0; want != SIZE_MAX && i < n; i++)
				model[want + i] = serial;
		} else {
			size_t n, start = granules_find(&g, at, &n);

			granules_give(&g, start);
			for (size_t i = 0; i < n; i++)
				model[start + i] = 0;
		}
		if (round % 100 == 0)
			compare(&g);
	}
	compare(&g);
	granules_fini(&g);
}

static void all_at_once(void **state HM_UNUSED)
{
	static const size_t counts[] = { 1, 63, 64, 65, 128, 4096 };

	for (size_t i = 0; i < HM_COUNT(counts); i++) {
		struct granules g;

		assert_true(granules_init(&g, counts[i]));
		assert_int_equal(granules_take(&g, counts[i] + 1), SIZE_MAX);
		assert_int_equal(granules_take(&g, counts[i]), 0);
		assert_int_equal(granules_take(&g, 1), SIZE_MAX);
		granules_give(&g, 0);
		assert_int_equal(g.used, 0);
		assert_int_equal(granules_take(&g, counts[i]), 0);
		granules_fini(&g);
	}
}

static int scenario(void *arg HM_UNUSED)
{
	struct granules g;

	if (!granules_init(&g, 100))
		return -1;
	granules_fini(&g);
	return 0;
}

static void sweep(void **state HM_UNUSED)
{
	sweep_check("granules", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_model_does),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
