#include "cdi/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"

static void env_replaces(void **state)
{
	struct cdi_edits e = { 0 };

	(void)state;
	assert_int_equal(cdi_add_env(&e, "A", "1"), 0);
	assert_int_equal(cdi_add_env(&e, "B", ""), 0);
	assert_int_equal(cdi_add_env(&e, "A", "2"), 0);
	assert_int_equal(e.env_count, 2);
	assert_string_equal(e.envs[0].name, "A");
	assert_string_equal(e.envs[0].value, "2");
	assert_string_equal(e.envs[1].value, "");
	cdi_edits_fini(&e);
}

static void refuses(void **state)
{
	struct cdi_edits e = { 0 };

	(void)state;
	assert_int_equal(cdi_add_env(&e, "", "1"), -HM_EINVAL);
	assert_int_equal(cdi_add_env(&e, "A=B", "1"), -HM_EINVAL);
	assert_int_equal(cdi_add_mount(&e, "", "/c", true), -HM_EINVAL);
	assert_int_equal(cdi_add_mount(&e, "/h", "", true), -HM_EINVAL);
	assert_int_equal(cdi_add_node(&e, "", NULL, NULL), -HM_EINVAL);
	assert_int_equal(cdi_add_node(&e, "/dev/x", NULL, "rwx"), -HM_EINVAL);
	assert_int_equal(e.env_count + e.mount_count + e.node_count, 0);
	cdi_edits_fini(&e);
}

static void mount_options(void **state)
{
	struct cdi_edits e = { 0 };

	(void)state;
	assert_int_equal(cdi_add_mount(&e, "/h", "/c", true), 0);
	assert_int_equal(cdi_add_mount(&e, "/h", "/c", false), 0);
	assert_int_equal(e.mounts[0].option_count, 5);
	assert_string_equal(e.mounts[0].options[0], "ro");
	assert_string_equal(e.mounts[1].options[0], "rw");
	assert_string_equal(e.mounts[0].options[3], "rbind");
	cdi_edits_fini(&e);
}

static int fill(struct cdi_edits *e)
{
	int r = cdi_add_env(e, "A", "1");

	if (r == 0)
		r = cdi_add_env(e, "B", "2");
	if (r == 0)
		r = cdi_add_mount(e, "/h", "/c", true);
	if (r == 0)
		r = cdi_add_node(e, "/dev/x", "/dev/null", "rw");
	return r;
}

static int scenario(void *arg)
{
	struct cdi_edits from = { 0 }, to = { 0 };
	int r = fill(&from);

	(void)arg;
	if (r == 0)
		r = cdi_add_env(&to, "B", "old");
	if (r == 0) {
		r = cdi_edits_append(&to, &from);
		if (r < 0) { /* as they were */
			assert_int_equal(to.env_count, 1);
			assert_string_equal(to.envs[0].value, "old");
			assert_int_equal(to.mount_count + to.node_count, 0);
		} else {
			assert_int_equal(to.env_count, 2);
			assert_string_equal(to.envs[0].value, "2");
			assert_int_equal(to.mount_count, 1);
			assert_string_equal(to.nodes[0].host_path, "/dev/null");
		}
	}
	cdi_edits_fini(&from);
	cdi_edits_fini(&to);
	return r;
}

static void append(void **state)
{
	(void)state;
	sweep_check("cdi edits", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(env_replaces), cmocka_unit_test(refuses),
					    cmocka_unit_test(mount_options), cmocka_unit_test(append) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
