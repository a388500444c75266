#include "agent/options/nvml_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"

static char root[400];

static int setup(void **state)
{
	int r = temp_setup(state);

	snprintf(root, sizeof root, "%s", temp_path("root"));
	return r;
}

/* A file, or with a target a link, below the root. */
static void make(const char *folder, const char *name, const char *target)
{
	char path[800];
	struct hm_err e;

	snprintf(path, sizeof path, "%s%s", root, folder);
	assert_int_equal(file_mkdirs(path, 0755, &e), 0);
	snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
	if (target == NULL)
		assert_int_equal(file_swap(path, "x", 1, 0644, &e), 0);
	else
		assert_int_equal(symlink(target, path), 0);
}

static void assert_found(const char *want) /* below the root; NULL: none */
{
	char out[PATH_MAX], real[PATH_MAX], path[800];

	if (want == NULL) {
		assert_false(nvml_library_find(root, out));
		return;
	}
	assert_true(nvml_library_find(root, out));
	snprintf(path, sizeof path, "%s%s", root, want);
	assert_non_null(realpath(path, real));
	assert_string_equal(out, real);
}

static void in_hamis_order(void **state)
{
	(void)state;
	assert_found(NULL);
	make("/lib/aarch64-linux-gnu", "libnvidia-ml.so.1", NULL);
	assert_found("/lib/aarch64-linux-gnu/libnvidia-ml.so.1");
	make("/usr/lib/x86_64-linux-gnu", "libnvidia-ml.so.550", NULL);
	make("/usr/lib/x86_64-linux-gnu", "libnvidia-ml.so.1", "libnvidia-ml.so.550");
	assert_found("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550");
	make("/usr/lib64", "libnvidia-ml.so.1", "gone"); /* leads nowhere */
	assert_found("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550");
}

static void an_absolute_link_stays_in_the_root(void **state)
{
	(void)state;
	make("/opt", "libnvidia-ml.so.550", NULL);
	make("/usr/lib64", "libnvidia-ml.so.1", "/opt/libnvidia-ml.so.550");
	assert_found("/opt/libnvidia-ml.so.550");
}

static void no_root_is_the_loaders_matter(void **state)
{
	static const char *const roots[] = { NULL, "", "/", "/nowhere" };
	char out[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(roots); i++)
		assert_false(nvml_library_find(roots[i], out));
}

static void a_folder_is_no_library(void **state)
{
	(void)state;
	make("/usr/lib64/libnvidia-ml.so.1", "x", NULL);
	assert_found(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, temp_teardown)
		TEST(in_hamis_order),
		TEST(an_absolute_link_stays_in_the_root),
		TEST(no_root_is_the_loaders_matter),
		TEST(a_folder_is_no_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
