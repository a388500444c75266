#include "harness/unit.h"

#include "model/placement/recall.h"

static void the_oldest_gives_way(void **state)
{
	hm_auto(recall) *r = recall_new(1);
	struct recall_set *low = recall_set(r, UINT64_MAX / 2), *high = recall_set(r, UINT64_MAX / 2 + 1);

	(void)state;
	assert_ptr_not_equal(low, high);
	assert_int_equal((uintptr_t)low % 64, 0);
	for (uint64_t key = 1; key <= RECALL_WAYS + 1; key++)
		recall_keep(low, key, -(int64_t)key);
	assert_null(recall_find(low, 1));
	for (uint64_t key = 2; key <= RECALL_WAYS + 1; key++)
		assert_int_equal(*recall_find(low, key), -(int64_t)key);
	assert_null(recall_find(high, 2));
}

static void each_set_is_there(void **state)
{
	enum { BITS = 10, SETS = 1 << BITS };
	hm_auto(recall) *r = recall_new(BITS);

	(void)state;
	for (uint64_t i = 0; i < SETS; i++)
		recall_keep(recall_set(r, i << (64 - BITS)), i + 1, (int64_t)i);
	for (uint64_t i = 0; i < SETS; i++)
		assert_int_equal(*recall_find(recall_set(r, i << (64 - BITS)), i + 1), i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_gives_way),
		cmocka_unit_test(each_set_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
