#include "core/cleanup.h"

#include <fcntl.h>

#include "harness/unit.h"

struct thing {
	int *freed;
};
static void thing_free(struct thing *t);
HM_DEFINE_AUTO(thing, thing_free);

static void thing_free(struct thing *t)
{
	if (t != NULL)
		++*t->freed;
}

static void a_local_is_freed_once_at_the_end_of_its_scope(void **state)
{
	int freed = 0;
	struct thing a = { &freed };

	(void)state;
	{
		hm_auto(thing) *t = &a;

		assert_ptr_equal(t->freed, &freed);
		assert_int_equal(freed, 0);
	}
	assert_int_equal(freed, 1);
}

static void what_was_stolen_is_not_freed(void **state)
{
	int freed = 0;
	struct thing a = { &freed }, *kept;

	(void)state;
	{
		hm_auto(thing) *t = &a;

		kept = HM_STEAL(t);
		assert_null(t);
	}
	assert_ptr_equal(kept, &a);
	assert_int_equal(freed, 0);
}

static void descriptors_are_closed_unless_stolen(void **state)
{
	int closed, kept;

	(void)state;
	{
		hm_auto_fd fd = open("/dev/null", O_RDONLY);
		hm_auto_fd stolen = open("/dev/null", O_RDONLY);
		hm_auto_fd none = -1;

		assert_true(fd >= 0 && stolen >= 0 && none < 0);
		closed = fd;
		kept = hm_steal_fd(&stolen);
		assert_int_equal(stolen, -1);
	}
	assert_int_equal(fcntl(closed, F_GETFD), -1);
	assert_int_not_equal(fcntl(kept, F_GETFD), -1);
	close(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_local_is_freed_once_at_the_end_of_its_scope),
		cmocka_unit_test(what_was_stolen_is_not_freed),
		cmocka_unit_test(descriptors_are_closed_unless_stolen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
