#include "kube/token.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static void is_read_again_when_its_file_changes(void **state)
{
	struct kube_token t;
	bool changed;

	(void)state;
	temp_write("token", "first\n");
	assert_int_equal(kube_token_init(&t, temp_path("token"), NULL, NULL), 0);
	assert_int_equal(kube_token_refresh(&t, false, &changed, NULL), 0);
	assert_true(changed);
	assert_string_equal(str_text(&t.text), "first");
	assert_int_equal(kube_token_refresh(&t, false, &changed, NULL), 0);
	assert_false(changed);
	temp_write("token", "second");
	assert_int_equal(kube_token_refresh(&t, false, &changed, NULL), 0);
	assert_true(changed);
	assert_string_equal(str_text(&t.text), "second");
	assert_int_equal(kube_token_refresh(&t, true, &changed, NULL), 0);
	assert_false(changed);
	kube_token_fini(&t);
}

static void a_bad_file_leaves_the_old_one(void **state)
{
	static const char *const bad[] = { "", "\n", "two words", "line\nline", "caf\xc3\xa9", "a\x01" };
	struct hm_err e = { 0 };
	struct kube_token t;
	bool changed;

	(void)state;
	temp_write("token", "good");
	assert_int_equal(kube_token_init(&t, temp_path("token"), NULL, NULL), 0);
	assert_int_equal(kube_token_refresh(&t, false, &changed, NULL), 0);
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		temp_write("token", bad[i]);
		assert_int_equal(kube_token_refresh(&t, true, &changed, &e), -HM_EINVAL);
		assert_non_null(strstr(e.msg, "holds no token"));
		assert_false(changed);
		assert_string_equal(str_text(&t.text), "good");
	}
	kube_token_fini(&t);
}

static void an_absent_file(void **state)
{
	struct hm_err e = { 0 };
	struct kube_token t;
	bool changed;

	(void)state;
	assert_int_equal(kube_token_init(&t, "/nowhere/token", NULL, NULL), 0);
	assert_int_equal(kube_token_refresh(&t, false, &changed, &e), -HM_ENOTFOUND);
	assert_string_equal(e.msg, "token file /nowhere/token: No such file or directory");
	kube_token_fini(&t);
}

static void a_fixed_one_stays(void **state)
{
	struct kube_token t;
	bool changed = true;

	(void)state;
	assert_int_equal(kube_token_init(&t, NULL, "fixed", NULL), 0);
	assert_int_equal(kube_token_refresh(&t, true, &changed, NULL), 0);
	assert_false(changed);
	assert_string_equal(str_text(&t.text), "fixed");
	kube_token_fini(&t);
}

static int use(void *arg)
{
	struct kube_token t;
	bool changed;
	int r = kube_token_init(&t, arg, NULL, NULL);

	if (r == 0)
		r = kube_token_refresh(&t, true, &changed, NULL);
	kube_token_fini(&t);
	return r;
}

static void memory_runs_out(void **state)
{
	char path[200];

	(void)state;
	temp_write("token", "good");
	snprintf(path, sizeof path, "%s", temp_path("token"));
	sweep_check("token", use, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_read_again_when_its_file_changes, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(a_bad_file_leaves_the_old_one, temp_setup, temp_teardown),
		cmocka_unit_test(an_absent_file),
		cmocka_unit_test(a_fixed_one_stays),
		cmocka_unit_test_setup_teardown(memory_runs_out, temp_setup, temp_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
