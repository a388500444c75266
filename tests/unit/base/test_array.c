#include "base/array.h"

#include <stdlib.h>

#include "harness/sweep.h"
#include "harness/unit.h"

struct list {
	int *items;
	size_t count, cap;
};

static void pushes_keep_order(void **state)
{
	struct list l = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_true(HM_PUSH(l.items, l.count, l.cap, i * 3));
	assert_int_equal(l.count, 1000);
	assert_true(l.cap >= l.count);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(l.items[i], i * 3);
	free(l.items);
}

static void reserve_makes_exactly_enough_room_at_least(void **state)
{
	struct list l = { 0 };

	(void)state;
	assert_true(array_reserve(&l.items, &l.cap, 0, sizeof *l.items));
	assert_null(l.items);
	assert_true(array_reserve(&l.items, &l.cap, 100, sizeof *l.items));
	assert_true(l.cap >= 100);
	l.items[99] = 1;
	free(l.items);
}

static void an_impossible_size_is_refused_and_nothing_changes(void **state)
{
	static const size_t wants[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 2 + 2, SIZE_MAX / 8 };
	struct list l = { 0 };

	(void)state;
	assert_true(HM_PUSH(l.items, l.count, l.cap, 7));
	for (size_t i = 0; i < HM_COUNT(wants); i++) {
		size_t cap = l.cap;
		int *items = l.items;

		assert_false(array_reserve(&l.items, &l.cap, wants[i], sizeof *l.items));
		assert_int_equal(l.cap, cap);
		assert_ptr_equal(l.items, items);
		assert_int_equal(l.items[0], 7);
	}
	free(l.items);
}

static int push_many(void *arg)
{
	struct list l = { 0 };
	int r = 0;

	(void)arg;
	for (int i = 0; i < 100 && r == 0; i++)
		r = HM_PUSH(l.items, l.count, l.cap, i) ? 0 : -1;
	for (size_t i = 0; i < l.count; i++)
		assert_int_equal(l.items[i], i);
	free(l.items);
	return r;
}

static void survives_every_failed_allocation(void **state)
{
	(void)state;
	sweep_check("array", push_many, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_keep_order),
		cmocka_unit_test(reserve_makes_exactly_enough_room_at_least),
		cmocka_unit_test(an_impossible_size_is_refused_and_nothing_changes),
		cmocka_unit_test(survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
