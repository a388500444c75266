#include "agent/container/container_dir.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "region/region.h"
#include "unit/agent/checkpoint_text.h"

static struct agent_paths paths;

static int setup(void **state)
{
	static char dir[300];
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct hm_err e;

	if (temp_setup(state) < 0)
		return -1;
	agent_options_init(&o, table);
	snprintf(dir, sizeof dir, "%s", temp_path("s"));
	o.state_dir = dir;
	return agent_paths_init(&paths, &o, &e);
}

static void write_dir(const struct claim *c)
{
	struct hm_err e;

	if (container_dir_write(&paths, c, false, &e) < 0)
		fail_msg("%s", e.msg);
}

static ino_t inode(const char *name, mode_t mode)
{
	struct stat st;

	if (stat(temp_path(name), &st) < 0)
		fail_msg("%s is not there", name);
	assert_int_equal(st.st_mode & 0777, mode);
	return st.st_ino;
}

static void all_is_there_with_its_mode_whatever_the_umask(void **state)
{
	struct claim c = make_claim(7, "u", "", "x", NULL);
	hm_auto_str text = { 0 };
	struct hm_err e;
	mode_t before = umask(077);

	(void)state;
	write_dir(&c);
	umask(before);
	inode("s/alloc/7/usage", 0755);
	inode("s/alloc/7/usage/region", 0666);
	inode("s/alloc/7/limits", 0644);
	assert_int_equal(file_read(temp_path("s/alloc/7/limits"), 4096, &text, &e), 0);
	assert_non_null(strstr(text.p, "gpu=GPU-0 memory=1048576 cores=25\n"));
	assert_int_equal(file_read(temp_path("s/alloc/7/ld.so.preload"), 4096, &text, &e), 0);
	assert_string_equal(text.p, "/run/hami-vgpu/libvgpu.so\n");
	claim_fini(&c);
}

static void oversubscription_is_in_the_limit_file(void **state)
{
	static const char *const says[] = { "\noversubscribe=0\nend\n", "\noversubscribe=1\nend\n" };
	struct claim c = make_claim(7, "u", "", "x", NULL);
	struct hm_err e;

	(void)state;
	for (int on = 0; on < 2; on++) {
		hm_auto_str text = { 0 };

		assert_int_equal(container_dir_write(&paths, &c, on == 1, &e), 0);
		assert_int_equal(file_read(temp_path("s/alloc/7/limits"), 4096, &text, &e), 0);
		assert_non_null(strstr(text.p, says[on]));
	}
	claim_fini(&c);
}

static void the_same_again_keeps_files_and_another_limit_does_not(void **state)
{
	struct claim c = make_claim(7, "u", "", "x", NULL);
	ino_t limits, region;

	(void)state;
	write_dir(&c);
	limits = inode("s/alloc/7/limits", 0644);
	region = inode("s/alloc/7/usage/region", 0666);
	write_dir(&c);
	assert_int_equal(inode("s/alloc/7/limits", 0644), limits);
	assert_int_equal(inode("s/alloc/7/usage/region", 0666), region);
	c.cards[0].memory_bytes *= 2;
	write_dir(&c);
	assert_int_not_equal(inode("s/alloc/7/limits", 0644), limits);
	claim_fini(&c);
}

static void remove_takes_all_and_absent_is_fine(void **state)
{
	struct claim c = make_claim(7, "u", "", "x", NULL);
	struct hm_err e;

	(void)state;
	write_dir(&c);
	temp_write("s/alloc/7/usage/what a container left", "");
	assert_int_equal(container_dir_remove(&paths, 7, &e), 0);
	assert_int_equal(temp_count("s/alloc"), 0);
	assert_int_equal(container_dir_remove(&paths, 7, &e), 0);
	claim_fini(&c);
}

static void what_a_container_adds_is_noticed_and_bounded(void **state)
{
	struct claim c = make_claim(7, "u", "", "x", NULL);
	struct stat st;

	(void)state;
	write_dir(&c);
	assert_true(container_dir_tidy(&paths, 7));
	assert_true(container_dir_tidy(&paths, 8)); /* none */
	temp_write("s/alloc/7/usage/more", "");
	assert_false(container_dir_tidy(&paths, 7));
	unlink(temp_path("s/alloc/7/usage/more"));
	assert_int_equal(truncate(temp_path("s/alloc/7/usage/region"), CONTAINER_DIR_MAX_BYTES + 1), 0);
	assert_false(container_dir_tidy(&paths, 7));
	assert_int_equal(stat(temp_path("s/alloc/7/usage/region"), &st), 0);
	assert_int_equal(st.st_size, CONTAINER_DIR_MAX_BYTES);
	assert_true(container_dir_tidy(&paths, 7));
	/* Its own link must not lead the agent to another file. */
	temp_write("other", "");
	assert_int_equal(truncate(temp_path("other"), CONTAINER_DIR_MAX_BYTES + 1), 0);
	unlink(temp_path("s/alloc/7/usage/region"));
	assert_int_equal(symlink(temp_path("other"), temp_path("s/alloc/7/usage/region")), 0);
	assert_true(container_dir_tidy(&paths, 7));
	assert_int_equal(stat(temp_path("other"), &st), 0);
	assert_int_equal(st.st_size, CONTAINER_DIR_MAX_BYTES + 1);
	claim_fini(&c);
}

/* The agent's loop must not stand still for as long as a container likes. */
static void much_is_removed_bit_by_bit(void **state)
{
	struct claim c = make_claim(7, "u", "", "x", NULL);
	struct hm_err e;
	int r, calls = 1;

	(void)state;
	write_dir(&c);
	for (int i = 0; i < 4500; i++) {
		char name[60];

		snprintf(name, sizeof name, "s/alloc/7/usage/%d", i);
		assert_int_equal(symlink("x", temp_path(name)), 0);
	}
	for (; (r = container_dir_remove(&paths, 7, &e)) == -HM_EAGAIN; calls++)
		assert_true(calls < 10);
	assert_int_equal(r, 0);
	assert_int_equal(calls, 3);
	assert_int_equal(temp_count("s/alloc"), 0);
	claim_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, temp_teardown)
		TEST(all_is_there_with_its_mode_whatever_the_umask),
		TEST(oversubscription_is_in_the_limit_file),
		TEST(the_same_again_keeps_files_and_another_limit_does_not),
		TEST(what_a_container_adds_is_noticed_and_bounded),
		TEST(remove_takes_all_and_absent_is_fine),
		TEST(much_is_removed_bit_by_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
