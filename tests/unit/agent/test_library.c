#include "agent/container/library.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static const char *install(const char *content)
{
	static char path[512];
	struct hm_err e;

	temp_write("source", content);
	if (library_install(temp_path("source"), temp_path("lib"), path, sizeof path, &e) < 0)
		fail_msg("%s", e.msg);
	return path;
}

static void the_name_is_the_contents(void **state)
{
	struct stat st, again;

	(void)state;
	/* printf '\177ELFone' | sha256sum */
	assert_string_equal(install("\177ELFone"), temp_path("lib/libvgpu.so.d4923526ab32944a"));
	assert_int_equal(stat(temp_path("lib/libvgpu.so.d4923526ab32944a"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(st.st_size, 7);
	install("\177ELFone");
	assert_int_equal(stat(temp_path("lib/libvgpu.so.d4923526ab32944a"), &again), 0);
	assert_int_equal(st.st_ino, again.st_ino); /* a running container's stays */
	install("\177ELFtwo");
	assert_int_equal(temp_count("lib"), 2);
}

static void a_damaged_copy_is_replaced(void **state)
{
	struct stat st;

	(void)state;
	install("\177ELFone");
	temp_write("lib/libvgpu.so.d4923526ab32944a", "\177E");
	install("\177ELFone");
	assert_int_equal(stat(temp_path("lib/libvgpu.so.d4923526ab32944a"), &st), 0);
	assert_int_equal(st.st_size, 7);
}

static void what_is_no_library_is_refused(void **state)
{
	char path[512], want[512];
	struct hm_err e;

	(void)state;
	temp_write("source", "#!/bin/sh\n");
	assert_int_equal(library_install(temp_path("source"), temp_path("lib"), path, sizeof path, &e), -HM_EINVAL);
	snprintf(want, sizeof want, "install libvgpu: %s is no shared library", temp_path("source"));
	assert_string_equal(e.msg, want);
	assert_int_equal(library_install(temp_path("none"), temp_path("lib"), path, sizeof path, &e), -HM_ENOTFOUND);
	assert_int_equal(temp_count("lib"), 0);
}

static bool ends_in_three(const char *path, void *arg)
{
	(void)arg;
	return path[strlen(path) - 1] == '3';
}

static void unused_ones_go_used_and_current_stay(void **state)
{
	(void)state;
	install("\177ELFone");
	temp_write("lib/libvgpu.so.1111111111111112", "old");
	temp_write("lib/libvgpu.so.1111111111111113", "used");
	temp_write("lib/README", "not ours");
	library_remove_unused(temp_path("lib"), temp_path("lib/libvgpu.so.d4923526ab32944a"), ends_in_three, NULL);
	assert_int_equal(temp_count("lib"), 3);
	assert_false(temp_exists("lib/libvgpu.so.1111111111111112"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
		TEST(the_name_is_the_contents),
		TEST(a_damaged_copy_is_replaced),
		TEST(what_is_no_library_is_refused),
		TEST(unused_ones_go_used_and_current_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
