#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

enum { MANY = 5000 };

static const char *key_of(int i)
{
	static char key[32];

	snprintf(key, sizeof key, "GPU-%d::%d", i % 97, i);
	return key;
}

static void put_get_replace_remove(void **state)
{
	hm_auto(map) *m = map_new();
	void *old = m;
	int a, b;

	(void)state;
	assert_null(map_get(m, "x"));
	assert_null(map_remove(m, "x"));
	assert_int_equal(map_put(m, "x", &a, &old), 0);
	assert_null(old);
	assert_ptr_equal(map_get(m, "x"), &a);
	assert_int_equal(map_put(m, "x", &b, &old), 0);
	assert_ptr_equal(old, &a);
	assert_int_equal(map_count(m), 1);
	assert_int_equal(map_put(m, "", &a, NULL), 0);
	assert_ptr_equal(map_get(m, ""), &a);
	assert_ptr_equal(map_remove(m, "x"), &b);
	assert_null(map_get(m, "x"));
	assert_int_equal(map_count(m), 1);
}

static void the_key_is_copied(void **state)
{
	hm_auto(map) *m = map_new();
	char key[] = "abc";

	(void)state;
	assert_int_equal(map_put(m, key, m, NULL), 0);
	key[0] = 'X';
	assert_ptr_equal(map_get(m, "abc"), m);
	assert_null(map_get(m, key));
}

/* Thousands of entries, two thirds of them removed and some put back, against an array that knows what must be there.
 */
static void thousands_with_removal(void **state)
{
	hm_auto(map) *m = map_new();
	static int values[MANY];
	static bool there[MANY];
	size_t count = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(map_put(m, key_of(i), &values[i], NULL), 0);
		there[i] = true;
	}
	for (int i = 0; i < MANY; i++) {
		if (i % 3 == 0)
			continue;
		assert_ptr_equal(map_remove(m, key_of(i)), &values[i]);
		there[i] = false;
	}
	for (int i = 0; i < MANY; i += 7) {
		assert_int_equal(map_put(m, key_of(i), &values[i], NULL), 0);
		there[i] = true;
	}
	for (int i = 0; i < MANY; i++) {
		assert_ptr_equal(map_get(m, key_of(i)), there[i] ? &values[i] : NULL);
		count += there[i] ? 1 : 0;
	}
	assert_int_equal(map_count(m), count);
}

/* A key that comes and goes must not make the map grow, nor slow down: holes are used up. */
static void churn_does_not_break_it(void **state)
{
	hm_auto(map) *m = map_new();

	(void)state;
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(map_put(m, key_of(i), m, NULL), 0);
		if (i >= 5)
			assert_ptr_equal(map_remove(m, key_of(i - 5)), m);
	}
	assert_int_equal(map_count(m), 5);
}

static void iterates_in_order_of_insertion(void **state)
{
	hm_auto(map) *m = map_new();
	const char *key;
	void *value;
	size_t at = 0;
	int i = 0, seen = 0;

	(void)state;
	assert_false(map_next(m, &at, &key, &value));
	for (i = 0; i < 1000; i++)
		assert_int_equal(map_put(m, key_of(i), (void *)(uintptr_t)(i + 1), NULL), 0);
	for (i = 0; i < 1000; i += 2)
		map_remove(m, key_of(i));
	for (i = 1, at = 0; map_next(m, &at, &key, &value); i += 2, seen++) {
		assert_string_equal(key, key_of(i));
		assert_int_equal((uintptr_t)value, (uintptr_t)i + 1);
	}
	assert_int_equal(seen, 500);
	at = 0;
	assert_true(map_next(m, &at, NULL, NULL));
}

static void the_current_key_may_be_removed(void **state)
{
	hm_auto(map) *m = map_new();
	const char *key;
	size_t at = 0, seen = 0;

	(void)state;
	for (int i = 0; i < 300; i++)
		assert_int_equal(map_put(m, key_of(i), m, NULL), 0);
	for (; map_next(m, &at, &key, NULL); seen++)
		assert_ptr_equal(map_remove(m, key), m);
	assert_int_equal(seen, 300);
	assert_int_equal(map_count(m), 0);
}

static int fill(void *arg)
{
	hm_auto(map) *m = map_new();

	(void)arg;
	if (m == NULL)
		return -1;
	for (int i = 0; i < 40; i++) {
		size_t before = map_count(m);

		if (map_put(m, key_of(i), m, NULL) < 0) {
			assert_int_equal(map_count(m), before);
			assert_null(map_get(m, key_of(i)));
			for (int k = 0; k < i; k++)
				assert_ptr_equal(map_get(m, key_of(k)), m);
			return -1;
		}
	}
	return 0;
}

static void survives_every_failed_allocation(void **state)
{
	(void)state;
	sweep_check("map", fill, NULL);
}

static void freeing_none_is_fine(void **state)
{
	(void)state;
	map_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_get_replace_remove),           cmocka_unit_test(the_key_is_copied),
		cmocka_unit_test(thousands_with_removal),           cmocka_unit_test(churn_does_not_break_it),
		cmocka_unit_test(iterates_in_order_of_insertion),   cmocka_unit_test(the_current_key_may_be_removed),
		cmocka_unit_test(survives_every_failed_allocation), cmocka_unit_test(freeing_none_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
