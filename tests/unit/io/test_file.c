#include "io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static void read_gives_the_bytes(void **state)
{
	hm_auto_str s = { 0 };
	struct hm_err e;

	(void)state;
	str_add(&s, "old");
	temp_write("f", "line\n");
	assert_int_equal(file_read(temp_path("f"), 5, &s, &e), 0);
	assert_string_equal(str_text(&s), "line\n");
	temp_write("empty", "");
	assert_int_equal(file_read(temp_path("empty"), 0, &s, &e), 0);
	assert_int_equal(s.n, 0);
}

static void read_errors_name_the_file_and_the_reason(void **state)
{
	hm_auto_str s = { 0 };
	struct hm_err e;
	char want[300];

	(void)state;
	assert_int_equal(file_read(temp_path("none"), 10, &s, &e), -HM_ENOTFOUND);
	snprintf(want, sizeof want, "read %s: No such file or directory", temp_path("none"));
	assert_string_equal(e.msg, want);
	assert_int_equal(file_read(temp_path(""), 10, &s, &e), -HM_EIO);
	snprintf(want, sizeof want, "read %s: Is a directory", temp_path(""));
	assert_string_equal(e.msg, want);
	temp_write("big", "123456");
	assert_int_equal(file_read(temp_path("big"), 5, &s, &e), -HM_ELIMIT);
	snprintf(want, sizeof want, "read %s: more than 5 bytes", temp_path("big"));
	assert_string_equal(e.msg, want);
	assert_int_equal(file_read("/dev/zero", 100000, &s, &e), -HM_ELIMIT);
}

static void replace_writes_with_the_mode_asked_for(void **state)
{
	hm_auto_str s = { 0 };
	struct hm_err e;
	struct stat st;
	mode_t before = umask(077);

	(void)state;
	assert_int_equal(file_replace(temp_path("f"), "one", 3, 0644, &e), 0);
	assert_int_equal(stat(temp_path("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(file_replace(temp_path("f"), "", 0, 0400, &e), 0);
	assert_int_equal(stat(temp_path("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_size, 0);
	umask(before);
	assert_int_equal(file_replace(temp_path("f"), "a\0b", 3, 0666, &e), 0);
	assert_int_equal(file_read(temp_path("f"), 3, &s, &e), 0);
	assert_memory_equal(s.p, "a\0b", 3);
	assert_int_equal(temp_count(""), 1);
}

/* A reader that has the old file open keeps it: the new one comes by rename. */
static void replace_never_changes_a_file_in_place(void **state)
{
	hm_auto_fd fd = -1;
	struct hm_err e;
	char buf[4] = "";

	(void)state;
	temp_write("f", "old");
	fd = open(temp_path("f"), O_RDONLY);
	assert_int_equal(file_replace(temp_path("f"), "new", 3, 0644, &e), 0);
	assert_int_equal(read(fd, buf, 3), 3);
	assert_string_equal(buf, "old");
}

static void replace_goes_over_a_link_not_through_it(void **state)
{
	hm_auto_str s = { 0 };
	struct hm_err e;

	(void)state;
	temp_write("target", "kept");
	assert_int_equal(symlink("target", temp_path("link")), 0);
	assert_int_equal(file_replace(temp_path("link"), "new", 3, 0644, &e), 0);
	assert_int_equal(file_read(temp_path("target"), 10, &s, &e), 0);
	assert_string_equal(str_text(&s), "kept");
}

static void a_failed_replace_leaves_nothing(void **state)
{
	struct hm_err e;
	char want[300], path[5000];

	(void)state;
	assert_int_equal(mkdir(temp_path("folder"), 0755), 0);
	temp_write("folder/x", "");
	assert_int_equal(file_replace(temp_path("folder"), "x", 1, 0644, &e), -HM_EIO);
	snprintf(want, sizeof want, "write %s: Is a directory", temp_path("folder"));
	assert_string_equal(e.msg, want);
	assert_int_equal(temp_count(""), 1);
	assert_int_equal(file_replace(temp_path("none/x"), "x", 1, 0644, &e), -HM_ENOTFOUND);
	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	assert_int_equal(file_replace(path, "x", 1, 0644, &e), -HM_EINVAL);
}

/* The disk is full in the middle of the write: the old file stands, no temporary one is left. In a child, since the
 * limit on file sizes that stands for the full disk cannot be raised again. */
static void a_write_that_breaks_off_leaves_the_old_file(void **state)
{
	hm_auto_str s = { 0 };
	struct hm_err e;
	int status;
	pid_t child;

	(void)state;
	temp_write("f", "old");
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit limit = { 1000, 1000 };
		static char big[100000];

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(file_replace(temp_path("f"), big, sizeof big, 0644, &e) == -HM_EIO ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(file_read(temp_path("f"), 10, &s, &e), 0);
	assert_string_equal(str_text(&s), "old");
	assert_int_equal(temp_count(""), 1);
}

static void what_killed_processes_left_is_removed(void **state)
{
	(void)state;
	temp_write("a.tmp-17", "");
	temp_write("a.json.tmp-2147483647", "");
	temp_write("a.json", "");
	temp_write("a.tmp-", "");
	temp_write("a.tmp-x", "");
	temp_write("b.tmp-17", "");
	file_remove_temporaries(temp_path(""), "a");
	assert_false(temp_exists("a.tmp-17"));
	assert_false(temp_exists("a.json.tmp-2147483647"));
	assert_int_equal(temp_count(""), 4);
	file_remove_temporaries(temp_path("none"), "");
	file_remove_temporaries(temp_path(""), "");
	assert_false(temp_exists("b.tmp-17"));
	assert_int_equal(temp_count(""), 3);
}

static void mkdirs_makes_what_is_missing(void **state)
{
	struct hm_err e;
	struct stat st;
	char want[300];

	(void)state;
	assert_int_equal(file_mkdirs(temp_path("a/b//c/"), 0750, &e), 0);
	assert_int_equal(stat(temp_path("a/b/c"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0750);
	assert_int_equal(chmod(temp_path("a"), 0700), 0);
	assert_int_equal(file_mkdirs(temp_path("a/b"), 0755, &e), 0);
	assert_int_equal(stat(temp_path("a"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(file_mkdirs("/", 0755, &e), 0);
	temp_write("file", "");
	assert_int_equal(file_mkdirs(temp_path("file/x"), 0755, &e), -HM_EIO);
	snprintf(want, sizeof want, "make folder %s: Not a directory", temp_path("file"));
	assert_string_equal(e.msg, want);
	assert_int_equal(symlink("nowhere", temp_path("dangling")), 0);
	assert_true(file_mkdirs(temp_path("dangling/x"), 0755, &e) < 0);
}

static void remove_tree_removes_all_and_follows_no_link(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(file_mkdirs(temp_path("keep"), 0755, &e), 0);
	temp_write("keep/file", "");
	assert_int_equal(file_mkdirs(temp_path("t/a/b"), 0755, &e), 0);
	temp_write("t/a/b/f", "");
	temp_write("t/.hidden", "");
	assert_int_equal(symlink(temp_path("keep"), temp_path("t/link")), 0);
	assert_int_equal(symlink("nowhere", temp_path("t/dangling")), 0);
	assert_int_equal(file_remove_tree(temp_path("t"), &e), 0);
	assert_false(temp_exists("t"));
	assert_true(temp_exists("keep/file"));
	assert_int_equal(file_remove_tree(temp_path("t"), &e), 0);
	assert_int_equal(symlink(temp_path("keep"), temp_path("top")), 0);
	assert_int_equal(file_remove_tree(temp_path("top"), &e), 0);
	assert_false(temp_exists("top"));
	assert_true(temp_exists("keep/file"));
}

/* What a container can leave behind: folders deeper than a path may be long. */
static void remove_tree_removes_what_no_path_reaches(void **state)
{
	enum { DEPTH = 600 };
	int fd = AT_FDCWD;
	struct hm_err e;

	(void)state;
	assert_int_equal(mkdir(temp_path("t"), 0755), 0);
	fd = open(temp_path("t"), O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < DEPTH; i++) {
		int inner;

		assert_int_equal(mkdirat(fd, "a-folder", 0755), 0);
		close(openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		inner = openat(fd, "a-folder", O_RDONLY | O_DIRECTORY);
		assert_true(inner >= 0);
		close(fd);
		fd = inner;
	}
	close(fd);
	assert_int_equal(file_remove_tree(temp_path("t"), &e), 0);
	assert_false(temp_exists("t"));
}

static void remove_some_stops_in_between(void **state)
{
	struct hm_err e;
	int r, calls = 0;

	(void)state;
	assert_int_equal(file_mkdirs(temp_path("t/a/b/c"), 0755, &e), 0);
	for (int i = 0; i < 20; i++) {
		char name[40];

		snprintf(name, sizeof name, i % 2 == 0 ? "t/f%d" : "t/a/b/f%d", i);
		temp_write(name, "");
	}
	while ((r = file_remove_some(temp_path("t"), 5, &e)) == -HM_EAGAIN) {
		assert_true(temp_exists("t"));
		assert_true(++calls < 20);
	}
	assert_int_equal(r, 0);
	assert_true(calls >= 4);
	assert_false(temp_exists("t"));
}

/* A container that still runs may put a link in a folder's place at any moment: here another process does so all the
 * time. With a removal by paths, one run in three found files gone outside. */
static void remove_tree_is_not_led_outside(void **state)
{
	enum { ROUNDS = 60, FILES = 200 };
	struct hm_err e;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		pid_t swapper;

		assert_int_equal(file_mkdirs(temp_path("t/u/a"), 0755, &e), 0);
		assert_int_equal(file_mkdirs(temp_path("keep"), 0755, &e), 0);
		for (int i = 0; i < FILES; i++) {
			char name[40];

			snprintf(name, sizeof name, "t/u/a/f%d", i);
			temp_write(name, "");
			snprintf(name, sizeof name, "keep/f%d", i);
			temp_write(name, "");
		}
		assert_int_equal(symlink(temp_path("keep"), temp_path("t/u/s")), 0);
		swapper = fork();
		if (swapper == 0) {
			char a[300], s[300];

			snprintf(a, sizeof a, "%s", temp_path("t/u/a"));
			snprintf(s, sizeof s, "%s", temp_path("t/u/s"));
			for (;;)
				renameat2(AT_FDCWD, a, AT_FDCWD, s, RENAME_EXCHANGE);
		}
		(void)!file_remove_tree(temp_path("t"), &e);
		kill(swapper, SIGKILL);
		assert_int_equal(waitpid(swapper, NULL, 0), swapper);
		assert_int_equal(temp_count("keep"), FILES);
		assert_int_equal(file_remove_tree(temp_path("t"), &e), 0);
	}
}

static void remove_tree_says_what_it_could_not_remove(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	assert_true(file_remove_tree("/proc/self/status", &e) < 0);
	assert_non_null(strstr(e.msg, "remove /proc/self/status: "));
}

static int read_once(void *arg)
{
	hm_auto_str s = { 0 };
	struct hm_err e;

	return file_read(arg, 100000, &s, &e);
}

static void survives_every_failed_allocation(void **state)
{
	char text[5000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	temp_write("f", text);
	sweep_check("file_read", read_once, (void *)(uintptr_t)temp_path("f"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read_gives_the_bytes),
		TEST(read_errors_name_the_file_and_the_reason),
		TEST(replace_writes_with_the_mode_asked_for),
		TEST(replace_never_changes_a_file_in_place),
		TEST(replace_goes_over_a_link_not_through_it),
		TEST(a_failed_replace_leaves_nothing),
		TEST(a_write_that_breaks_off_leaves_the_old_file),
		TEST(what_killed_processes_left_is_removed),
		TEST(mkdirs_makes_what_is_missing),
		TEST(remove_tree_removes_all_and_follows_no_link),
		TEST(remove_tree_removes_what_no_path_reaches),
		TEST(remove_some_stops_in_between),
		TEST(remove_tree_is_not_led_outside),
		TEST(remove_tree_says_what_it_could_not_remove),
		TEST(survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
