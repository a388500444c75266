#include "agent/claims/pending.h"

#include <stdio.h>

#include "harness/sweep.h"
#include "harness/unit.h"

static void sets_match_whole_in_any_order(void **state)
{
	hm_auto(pending) *p = pending_new();
	struct hm_err e;

	(void)state;
	assert_int_equal(pending_add(p, 1, (const char *[]) { "a", "b" }, 2, 5, &e), 0);
	const struct pending_item *item = pending_at(p, 0);
	assert_int_equal(item->number, 1);
	assert_int_equal(item->since_ms, 5);
	assert_true(pending_has_set(item, (const char *[]) { "b", "a" }, 2));
	assert_false(pending_has_set(item, (const char *[]) { "a" }, 1));
	assert_false(pending_has_set(item, (const char *[]) { "a", "c" }, 2));
}

static void the_oldest_goes_first_and_removal_keeps_the_order(void **state)
{
	hm_auto(pending) *p = pending_new();
	struct hm_err e;

	(void)state;
	for (uint64_t i = 0; i < PENDING_MAX + 3; i++)
		assert_int_equal(pending_add(p, i, (const char *[]) { "a" }, 1, 0, &e), 0);
	assert_int_equal(pending_count(p), PENDING_MAX);
	assert_int_equal(pending_at(p, 0)->number, 3);
	pending_remove(p, 4);
	pending_remove(p, 4);
	assert_int_equal(pending_count(p), PENDING_MAX - 1);
	assert_int_equal(pending_at(p, 0)->number, 3);
	assert_int_equal(pending_at(p, 1)->number, 5);
}

static int scenario(void *arg)
{
	hm_auto(pending) *p = pending_new();
	struct hm_err e;

	(void)arg;
	if (p == NULL)
		return -1;
	int r = pending_add(p, 1, (const char *[]) { "a", "b" }, 2, 0, &e);
	assert_int_equal(pending_count(p), r == 0);
	return r;
}

static void allocation_failures(void **state)
{
	(void)state;
	sweep_check("pending", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_match_whole_in_any_order),
		cmocka_unit_test(the_oldest_goes_first_and_removal_keeps_the_order),
		cmocka_unit_test(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
