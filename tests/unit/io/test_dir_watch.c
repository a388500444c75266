#include "io/dir_watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static struct loop *loop;
static struct dir_watch *watch;
static struct str seen;
static int free_at; /* the watch is freed in the call of this number; 0: never */
static int calls;

static void on_event(void *arg, enum dir_event event, const char *name)
{
	static const char kinds[] = { [DIR_CREATED] = '+', [DIR_DELETED] = '-', [DIR_WRITTEN] = 'w', [DIR_GONE] = '!' };

	assert_ptr_equal(arg, &seen);
	str_addf(&seen, "%c%s ", kinds[event], name);
	if (++calls == free_at)
		dir_watch_free(HM_STEAL(watch));
}

static int start(void **state)
{
	struct hm_err e;

	free_at = calls = 0;
	str_clear(&seen);
	return temp_setup(state) == 0 && mkdir(temp_path("d"), 0755) == 0 && loop_new(&loop, &e) == 0 &&
			       dir_watch_new(loop, temp_path("d"), on_event, &seen, &watch, &e) == 0
		       ? 0
		       : -1;
}

static int end(void **state)
{
	dir_watch_free(HM_STEAL(watch));
	loop_free(loop);
	str_fini(&seen);
	return temp_teardown(state);
}

static void turn(void)
{
	struct hm_err e;

	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_run_once(loop, 10, &e), 0);
}

static void writes_where_they_are_asked_for(void **state)
{
	struct hm_err e;

	(void)state;
	temp_write("d/a", "1");
	turn();
	assert_string_equal(str_text(&seen), "+a ");
	dir_watch_free(HM_STEAL(watch));
	assert_int_equal(dir_watch_new_writes(loop, temp_path("d"), on_event, &seen, &watch, &e), 0);
	str_clear(&seen);
	temp_write("d/a", "2");
	turn();
	assert_string_equal(str_text(&seen), "wa ");
}

static void names_that_come_and_go(void **state)
{
	(void)state;
	temp_write("d/a", "1");
	assert_int_equal(rename(temp_path("d/a"), temp_path("d/b")), 0);
	temp_write("outside", "");
	assert_int_equal(rename(temp_path("outside"), temp_path("d/in")), 0);
	assert_int_equal(unlink(temp_path("d/b")), 0);
	assert_int_equal(rename(temp_path("d/in"), temp_path("out")), 0);
	turn();
	assert_string_equal(str_text(&seen), "+a -a +b +in -b -in ");
}

static void a_write_is_no_news(void **state)
{
	(void)state;
	temp_write("d/a", "1");
	turn();
	str_clear(&seen);
	temp_write("d/a", "2");
	turn();
	assert_string_equal(str_text(&seen), "");
}

static void the_folders_end_is_told(void **state)
{
	(void)state;
	assert_int_equal(rmdir(temp_path("d")), 0);
	turn();
	assert_memory_equal(str_text(&seen), "! ", 2);
}

static void the_folders_move_is_told(void **state)
{
	(void)state;
	assert_int_equal(rename(temp_path("d"), temp_path("elsewhere")), 0);
	turn();
	assert_string_equal(str_text(&seen), "! ");
}

static void the_watch_may_be_freed_in_its_callback(void **state)
{
	(void)state;
	free_at = 2;
	for (int i = 0; i < 5; i++) {
		char name[16];

		snprintf(name, sizeof name, "d/%d", i);
		temp_write(name, "");
	}
	turn();
	assert_string_equal(str_text(&seen), "+0 +1 ");
	assert_null(watch);
}

static void many_events_all_arrive(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		char name[300];

		snprintf(name, sizeof name, "d/%0200d", i);
		temp_write(name, "");
	}
	for (int i = 0; i < 100 && calls < 1000; i++)
		turn();
	assert_int_equal(calls, 1000);
}

static void what_cannot_be_watched_is_named(void **state)
{
	struct dir_watch *other = NULL;
	struct hm_err e;
	char want[300];

	(void)state;
	assert_int_equal(dir_watch_new(loop, temp_path("none"), on_event, NULL, &other, &e), -HM_ENOTFOUND);
	snprintf(want, sizeof want, "watch %s: No such file or directory", temp_path("none"));
	assert_string_equal(e.msg, want);
	temp_write("file", "");
	assert_int_equal(dir_watch_new(loop, temp_path("file"), on_event, NULL, &other, &e), -HM_EIO);
	assert_null(other);
}

/* The number that the next file would get: what was left open raises it. */
static int open_files(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static int make_one(void *arg)
{
	hm_auto(dir_watch) *other = NULL;
	struct hm_err e;

	(void)arg;
	return dir_watch_new(loop, temp_path("d"), on_event, NULL, &other, &e);
}

static void survives_every_failed_allocation(void **state)
{
	int before = open_files();

	(void)state;
	sweep_check("dir_watch", make_one, NULL);
	assert_int_equal(open_files(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_that_come_and_go),           TEST(a_write_is_no_news),
		TEST(writes_where_they_are_asked_for),  TEST(the_folders_end_is_told),
		TEST(the_folders_move_is_told),         TEST(the_watch_may_be_freed_in_its_callback),
		TEST(many_events_all_arrive),           TEST(what_cannot_be_watched_is_named),
		TEST(survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
