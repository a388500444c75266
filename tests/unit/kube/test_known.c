#include "kube/known.h"

#include <stdio.h>

#include "harness/sweep.h"
#include "harness/unit.h"

static int put(struct kube_known *k, const char *key, const char *uid, const char *version, uint32_t mark,
	       enum kube_known_change *change)
{
	struct kube_object o = { .uid = uid, .resource_version = version };

	snprintf(o.key, sizeof o.key, "%s", key);
	return kube_known_put(k, &o, mark, change, NULL);
}

static enum kube_known_change change_of(struct kube_known *k, const char *key, const char *uid, const char *version,
					uint32_t mark)
{
	enum kube_known_change change;

	assert_int_equal(put(k, key, uid, version, mark, &change), 0);
	return change;
}

static void what_a_put_changes(void **state)
{
	hm_auto(kube_known) *k = kube_known_new();
	struct kube_known_object o;

	(void)state;
	assert_int_equal(change_of(k, "n/a", "u1", "1", 0), KNOWN_NEW);
	assert_int_equal(change_of(k, "n/a", "u1", "1", 0), KNOWN_SAME);
	assert_int_equal(change_of(k, "n/a", "u1", "2", 0), KNOWN_NEW);
	assert_int_equal(change_of(k, "n/a", "u2", "3", 0), KNOWN_OTHER);
	assert_int_equal(change_of(k, "n/a", "u1", "2", 0), KNOWN_SAME);
	assert_false(kube_known_take(k, "n/a", "u2", &o));
	assert_false(kube_known_take(k, "n/b", NULL, &o));
	assert_true(kube_known_take(k, "n/a", NULL, &o));
	assert_string_equal(o.object.key, "n/a");
	assert_string_equal(o.object.name_space, "n");
	assert_string_equal(o.object.name, "a");
	assert_string_equal(o.object.uid, "u1");
	assert_string_equal(o.object.resource_version, "2");
	assert_null(o.object.tree);
	kube_known_object_fini(&o);
	assert_int_equal(kube_known_count(k), 0);
	assert_int_equal(change_of(k, "n/a", "u2", "3", 0), KNOWN_NEW);
}

static void what_a_list_did_not_mark_comes_out(void **state)
{
	hm_auto(kube_known) *k = kube_known_new();
	struct kube_known_object o;
	unsigned gone = 0;
	size_t at = 0;
	char key[16];

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "%u", i);
		change_of(k, key, "u", "1", 1);
	}
	for (unsigned i = 0; i < 1000; i += 3) {
		snprintf(key, sizeof key, "%u", i);
		assert_int_equal(change_of(k, key, "u", "1", 2), KNOWN_SAME);
	}
	while (kube_known_take_unmarked(k, &at, 2, &o)) {
		unsigned n = 0;

		assert_int_equal(sscanf(o.object.name, "%u", &n), 1);
		assert_true(n % 3 != 0);
		assert_string_equal(o.object.name_space, "");
		kube_known_object_fini(&o);
		gone++;
	}
	assert_int_equal(gone, 1000 - 334);
	assert_int_equal(kube_known_count(k), 334);
}

static int use(void *arg)
{
	hm_auto(kube_known) *k = kube_known_new();
	enum kube_known_change change;
	struct kube_known_object o;

	(void)arg;
	if (k == NULL || put(k, "a", "u", "1", 0, &change) < 0 || put(k, "b", "u", "1", 0, &change) < 0)
		return -1;
	if (put(k, "a", "u", "2", 0, &change) < 0) {
		/* Nothing was lost by it. */
		assert_true(kube_known_take(k, "a", NULL, &o));
		assert_string_equal(o.object.resource_version, "1");
		kube_known_object_fini(&o);
		return -1;
	}
	return 0;
}

static void memory_runs_out(void **state)
{
	(void)state;
	sweep_check("known", use, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_put_changes),
		cmocka_unit_test(what_a_list_did_not_mark_comes_out),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
