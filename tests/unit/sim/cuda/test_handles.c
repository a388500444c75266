#include "sim/cuda/handles.h"

#include <stdint.h>

#include "harness/unit.h"

enum { OBJECTS = 3000, ROUNDS = 60000 };

/* Addresses as malloc gives them; nothing is ever read there. */
static const void *object(unsigned i)
{
	return (const void *)(uintptr_t)(0x10000 + 48ULL * i);
}

static void as_the_model_does(void **state HM_UNUSED)
{
	static enum cu_handle model[OBJECTS];
	unsigned long long seed = 3;

	for (int round = 0; round < ROUNDS; round++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		unsigned i = (unsigned)(seed >> 33) % OBJECTS;

		if (model[i] != 0) {
			cu_handle_remove(object(i));
			model[i] = 0;
		} else {
			model[i] = round % 2 == 0 ? CU_STREAM : CU_EVENT;
			assert_true(cu_handle_add(object(i), model[i]));
		}
		unsigned probe = (unsigned)(seed >> 40) % OBJECTS;

		assert_int_equal(cu_handle_is(object(probe), CU_STREAM), model[probe] == CU_STREAM);
		assert_int_equal(cu_handle_is(object(probe), CU_EVENT), model[probe] == CU_EVENT);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		assert_int_equal(cu_handle_is(object(i), CU_STREAM), model[i] == CU_STREAM);
		cu_handle_remove(object(i));
		cu_handle_remove(object(i));
		assert_false(cu_handle_is(object(i), CU_STREAM));
	}
	assert_false(cu_handle_is(NULL, CU_STREAM));
}

static void before_the_first(void **state HM_UNUSED)
{
	assert_false(cu_handle_is(object(1), CU_STREAM));
	cu_handle_remove(object(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_the_first),
		cmocka_unit_test(as_the_model_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
