/* The offsets here are HAMi-core's, written down as numbers: the monitor reads the file by them. */
#include "agent/processes/hami_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/temp.h"
#include "harness/unit.h"

enum { SWITCH_AT = 2008900, RECENT_AT = 2008904 };

static struct hami_cache cache;
static struct region_process processes[REGION_MAX_PROCESSES] = {
	{ .pid = 7, .used_bytes = { 100, 200 } },
	{ .pid = 8, .used_bytes = { 1000, 0 } },
};
static struct region_snapshot region = {
	.card_count = 2,
	.process_count = 2,
	.processes = processes,
	.cards = { { .uuid = "GPU-a", .limit_bytes = 3145728000, .cores = 30 },
		   { .uuid = "GPU-b", .limit_bytes = 0, .cores = 100 } },
};

static void fill(size_t process_count, int64_t now_s)
{
	const struct hami_file_state s = {
		.region = &region, .busy_percent = { 35, 1 }, .priority = 1, .now_s = now_s
	};

	region.process_count = process_count;
	hami_file_fill(&cache, &s);
}

static bool write_file(bool launched)
{
	struct hm_err e = { 0 };
	unsigned held = 0;

	if (hami_file_write(temp_path("f"), &cache, launched, &held, &e) < 0)
		fail_msg("%s", e.msg);
	return held > 0;
}

static int64_t number_at(long at, size_t bytes)
{
	int fd = open(temp_path("f"), O_RDONLY);
	int64_t wide = 0;
	int32_t narrow = 0;
	void *into = bytes == 4 ? (void *)&narrow : &wide;

	assert_int_equal(pread(fd, into, bytes, at), (ssize_t)bytes);
	close(fd);
	return bytes == 4 ? narrow : wide;
}

static void set_at(long at, int32_t value)
{
	int fd = open(temp_path("f"), O_WRONLY);

	assert_int_equal(pwrite(fd, &value, sizeof value, at), (ssize_t)sizeof value);
	close(fd);
}

static void a_monitor_finds_each_word(void **state)
{
	const struct {
		long at;
		size_t bytes;
		int64_t value;
	} words[] = {
		{ 0, 4, 19920718 },
		{ 4, 4, 1 },
		{ 8, 4, 2 },
		{ 56, 8, 2 },
		{ 1600, 8, 3145728000 },
		{ 1608, 8, 0 },
		{ 1728, 8, 30 },
		{ 1736, 8, 100 },
		{ 1856, 4, 7 },
		{ 1856 + 8 + 16, 8, 100 },
		{ 1856 + 8 + 32, 8, 100 },
		{ 1856 + 8 + 64 + 32, 8, 200 },
		{ 1856 + 1032, 8, 100 },
		{ 1856 + 1160 + 16, 8, 35 },
		{ 1856 + 1208 + 16, 8, 1 },
		{ 1856 + 1928, 4, 1 },
		{ 3816, 4, 8 },
		{ 3816 + 8 + 32, 8, 1000 },
		{ 3816 + 1160 + 16, 8, 0 },
		{ 3816 + 1928, 4, 1 },
		{ 2008896, 4, 2 },
		{ SWITCH_AT, 4, 1 },
		{ RECENT_AT, 4, 2 },
		{ 2008908, 4, 1 },
		{ 2008912, 8, 1764447654 },
	};
	char uuid[96] = "";
	struct stat st;
	int fd;

	(void)state;
	fill(2, 1764447654);
	assert_false(write_file(false));
	for (size_t i = 0; i < HM_COUNT(words); i++)
		if (number_at(words[i].at, words[i].bytes) != words[i].value)
			fail_msg("at %ld stands %lld", words[i].at, (long long)number_at(words[i].at, words[i].bytes));
	fd = open(temp_path("f"), O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 2008953);
	assert_int_equal(pread(fd, uuid, sizeof uuid, 64 + 96), (ssize_t)sizeof uuid);
	assert_string_equal(uuid, "GPU-b");
	close(fd);
}

/* The monitor keeps what it mapped: the same inode must go on to tell. */
static void it_is_written_in_place(void **state)
{
	struct stat before, after;

	(void)state;
	fill(2, 1);
	write_file(false);
	assert_int_equal(stat(temp_path("f"), &before), 0);
	fill(1, 2);
	write_file(false);
	assert_int_equal(stat(temp_path("f"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(number_at(2008896, 4), 1);
	assert_int_equal(number_at(2008912, 8), 1); /* no launch */
}

static void the_monitor_s_words_stay_its_own(void **state)
{
	(void)state;
	fill(2, 1);
	write_file(false);
	set_at(SWITCH_AT, 0);
	set_at(RECENT_AT, 1);
	fill(2, 5);
	assert_false(write_file(false));
	assert_int_equal(number_at(SWITCH_AT, 4), 0);
	assert_int_equal(number_at(RECENT_AT, 4), 1);

	assert_false(write_file(true));
	assert_int_equal(number_at(SWITCH_AT, 4), 0);
	assert_int_equal(number_at(RECENT_AT, 4), 2);
	assert_int_equal(number_at(2008912, 8), 5);

	set_at(RECENT_AT, -1);
	assert_true(write_file(true));
	assert_int_equal(number_at(RECENT_AT, 4), -2);
}

static void what_is_no_such_file_is_made_anew(void **state)
{
	struct stat st;

	(void)state;
	fill(2, 1);
	temp_write("f", "short");
	write_file(false);
	assert_int_equal(number_at(0, 4), 19920718);

	assert_int_equal(truncate(temp_path("f"), 4096), 0);
	write_file(false);
	assert_int_equal(number_at(2008896, 4), 2);

	set_at(4, 2); /* another major version */
	write_file(false);
	assert_int_equal(number_at(4, 4), 1);

	/* A link is not followed, though a file of this kind is behind it. */
	set_at(RECENT_AT, 7);
	assert_int_equal(rename(temp_path("f"), temp_path("elsewhere")), 0);
	assert_int_equal(symlink(temp_path("elsewhere"), temp_path("f")), 0);
	write_file(true);
	assert_int_equal(lstat(temp_path("f"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(rename(temp_path("elsewhere"), temp_path("f")), 0);
	assert_int_equal(number_at(RECENT_AT, 4), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_monitor_finds_each_word, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(it_is_written_in_place, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(the_monitor_s_words_stay_its_own, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(what_is_no_such_file_is_made_anew, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
