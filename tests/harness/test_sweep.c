/* The sweep itself, against scenarios with a seeded fault that it must find: a leak, a swallowed failure. */
#include "harness/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "harness/unit.h"

static int good(void *arg)
{
	char *a = malloc(10), *b = a != NULL ? strdup("b") : NULL, *c = b != NULL ? calloc(2, 8) : NULL, *grown;
	int r = -1;

	(void)arg;
	if (c != NULL) {
		grown = realloc(c, 100000);
		if (grown != NULL) {
			c = grown;
			r = 0;
		}
	}
	free(a);
	free(b);
	free(c);
	return r;
}

static void *leaked;

/* Forgets the first block where the second cannot be had. */
static int leaks_on_failure(void *arg)
{
	char *a = malloc(10), *b;

	(void)arg;
	if (a == NULL)
		return -1;
	b = malloc(20);
	if (b == NULL) {
		leaked = a;
		return -1;
	}
	free(a);
	free(b);
	return 0;
}

static int leaks_always(void *arg)
{
	(void)arg;
	leaked = malloc(1);
	return 0;
}

/* Goes on without the second block and says all is well. */
static int swallows(void *arg)
{
	char *a = malloc(10), *b;

	(void)arg;
	if (a == NULL)
		return -1;
	b = malloc(20);
	free(a);
	free(b);
	return 0;
}

static int fails_anyway(void *arg)
{
	(void)arg;
	free(malloc(1));
	return -1;
}

/* An array that loses its old text where realloc fails. */
static int loses_on_realloc(void *arg)
{
	char *a = malloc(10), *before = a;

	(void)arg;
	if (a == NULL)
		return -1;
	a = realloc(a, 1000000);
	if (a == NULL) {
		leaked = before;
		return -1;
	}
	free(a);
	return 0;
}

static void finds_nothing_in_a_good_scenario(void **state)
{
	struct sweep_result r = sweep_run(good, NULL);

	(void)state;
	assert_int_equal(r.allocations, 4);
	assert_int_equal(r.leaked, 0);
	assert_int_equal(r.swallowed, 0);
	assert_false(r.failed);
	sweep_check("good", good, NULL);
}

static void finds_a_leak_and_says_where(void **state)
{
	struct sweep_result r = sweep_run(leaks_on_failure, NULL);

	(void)state;
	assert_int_equal(r.leaked, 1);
	assert_int_equal(r.leaked_at, 2);
	free(leaked);
	r = sweep_run(leaks_always, NULL);
	assert_int_equal(r.leaked, 1);
	assert_int_equal(r.leaked_at, 0);
	free(leaked);
	r = sweep_run(loses_on_realloc, NULL);
	assert_int_equal(r.leaked, 1);
	assert_int_equal(r.leaked_at, 2);
	free(leaked);
}

static void finds_a_swallowed_failure(void **state)
{
	struct sweep_result r = sweep_run(swallows, NULL);

	(void)state;
	assert_int_equal(r.leaked, 0);
	assert_int_equal(r.swallowed, 1);
}

static void finds_a_scenario_that_never_works(void **state)
{
	(void)state;
	assert_true(sweep_run(fails_anyway, NULL).failed);
}

static void allocations_outside_a_sweep_are_left_alone(void **state)
{
	void *before = malloc(10);

	(void)state;
	assert_int_equal(sweep_run(good, NULL).leaked, 0);
	free(before);
	assert_int_equal(sweep_run(good, NULL).leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_nothing_in_a_good_scenario),
		cmocka_unit_test(finds_a_leak_and_says_where),
		cmocka_unit_test(finds_a_swallowed_failure),
		cmocka_unit_test(finds_a_scenario_that_never_works),
		cmocka_unit_test(allocations_outside_a_sweep_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
