#include "agent/claims/counter.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static uint64_t take(struct counter *c)
{
	struct hm_err e;
	uint64_t n = 0;

	if (counter_take(c, &n, &e) < 0)
		fail_msg("%s", e.msg);
	return n;
}

static struct counter *open_at(uint64_t floor)
{
	struct counter *c = NULL;
	struct hm_err e;

	if (counter_open(temp_path("counter"), floor, &c, &e) < 0)
		fail_msg("%s", e.msg);
	return c;
}

static void numbers_rise_and_a_crash_skips_the_rest_of_a_block(void **state)
{
	struct counter *c = open_at(0);

	(void)state;
	assert_int_equal(take(c), 1);
	assert_int_equal(take(c), 2);
	counter_free(c); /* as a crash: nothing is written at the end */
	c = open_at(0);
	assert_int_equal(take(c), 1025);
	counter_free(c);
}

static void a_block_is_never_given_before_it_is_on_disk(void **state)
{
	struct counter *c = open_at(0);
	char text[32];
	uint64_t n;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		FILE *f = fopen(temp_path("counter"), "r");
		unsigned long long end = 0;

		n = take(c);
		assert_non_null(f);
		if (n == 1024 || n == 1025 || n == 2049) {
			fclose(f);
			f = fopen(temp_path("counter"), "r");
		}
		assert_non_null(fgets(text, sizeof text, f));
		fclose(f);
		assert_int_equal(sscanf(text, "%llu", &end), 1);
		assert_true(n < end);
	}
	counter_free(c);
}

/* In front of libc's. */
static bool disk_hangs;
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

int fsync(int fd)
{
	(void)fd;
	if (disk_hangs) {
		pthread_mutex_lock(&disk);
		pthread_mutex_unlock(&disk);
	}
	return 0;
}

static bool marker_done;

static void nothing(struct worker_job *job)
{
	(void)job;
}

static void on_marker(struct worker_job *job)
{
	(void)job;
	marker_done = true;
}

/* Jobs run in order: all before this one are done. */
static void run_jobs(struct loop *l, struct worker *w)
{
	struct worker_job marker = { nothing, on_marker, NULL };
	struct hm_err e;

	marker_done = false;
	worker_submit(w, &marker);
	for (int i = 0; !marker_done && i < 1000; i++)
		assert_int_equal(loop_run_once(l, 10, &e), 0);
	assert_true(marker_done);
}

static void refill_keeps_half_a_block_in_hand(void **state)
{
	struct counter *c = open_at(0);
	struct worker *w = NULL;
	struct loop *l = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_new(&l, &e), 0);
	assert_int_equal(worker_new(l, &w, &e), 0);
	for (int i = 0; i < 600; i++)
		take(c);
	counter_refill(c, w);
	run_jobs(l, w);
	/* From now on the disk is full: nothing is written, and 1,024 calls are still served. */
	assert_int_equal(unlink(temp_path("counter")), 0);
	assert_int_equal(mkdir(temp_path("counter"), 0755), 0);
	for (int i = 0; i < 1024; i++)
		take(c);
	while (counter_take(c, &(uint64_t) { 0 }, &e) == 0)
		;
	assert_non_null(strstr(e.msg, "reserve Allocate numbers: write "));
	assert_true(worker_free(w, 1000));
	counter_free(c);
	loop_free(l);
	assert_int_equal(rmdir(temp_path("counter")), 0);
}

/* No new file can be made beside it; a folder of the temporary's name does that for root too. */
static void a_full_disk_has_room_for_other_digits(void **state)
{
	struct counter *c = open_at(0);
	char temporary[64];
	uint64_t n = 0;

	(void)state;
	snprintf(temporary, sizeof temporary, "counter.tmp-%d", (int)getpid());
	assert_int_equal(mkdir(temp_path(temporary), 0755), 0);
	for (int i = 0; i < 3000; i++)
		n = take(c);
	counter_free(c);
	assert_int_equal(n, 3000);
	assert_int_equal(rmdir(temp_path(temporary)), 0);
	c = open_at(0);
	assert_int_equal(take(c), 3073);
	counter_free(c);
}

/* The loop serves the kubelet: a disk that takes seconds must not hold it up while there are numbers. */
static void a_slow_disk_holds_up_no_call(void **state)
{
	struct counter *c = open_at(0);
	struct worker *w = NULL;
	struct loop *l = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_new(&l, &e), 0);
	assert_int_equal(worker_new(l, &w, &e), 0);
	pthread_mutex_lock(&disk);
	disk_hangs = true;
	for (uint64_t i = 1; i <= 1024; i++) {
		assert_int_equal(take(c), i);
		counter_refill(c, w);
	}
	disk_hangs = false;
	pthread_mutex_unlock(&disk);
	/* Both want to write the next block. */
	assert_int_equal(take(c), 1025);
	run_jobs(l, w);
	assert_int_equal(take(c), 1026);
	assert_true(worker_free(w, 1000));
	counter_free(c);
	loop_free(l);
	c = open_at(0);
	assert_int_equal(take(c), 2049);
	counter_free(c);
}

/* It goes on in what is left of it when the call returns after all. */
static void a_refill_that_hangs_at_the_end_is_left_alone(void **state)
{
	struct counter *c = open_at(0);
	struct worker *w = NULL;
	struct loop *l = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_new(&l, &e), 0);
	assert_int_equal(worker_new(l, &w, &e), 0);
	pthread_mutex_lock(&disk);
	disk_hangs = true;
	for (int i = 0; i < 600; i++)
		take(c);
	counter_refill(c, w);
	while (worker_busy_ms(w, UINT64_MAX) == 0)
		usleep(1000);
	assert_false(worker_free(w, 50));
	counter_free(c);
	disk_hangs = false;
	pthread_mutex_unlock(&disk);
	assert_true(worker_free(w, 5000));
	counter_free(c);
	loop_free(l);
	c = open_at(0);
	assert_int_equal(take(c), 2049);
	counter_free(c);
}

static void a_lost_or_broken_file_starts_above_what_is_in_use(void **state)
{
	static const char *const texts[] = { "", "abc\n", "12", "-5\n", "99999999999999999999999\n", "12\n13\n" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		struct counter *c;

		temp_write("counter", texts[i]);
		c = open_at(5000);
		assert_int_equal(take(c), 5000);
		counter_free(c);
	}
	temp_write("counter", "9000\n");
	struct counter *c = open_at(5000);
	assert_int_equal(take(c), 9000);
	counter_free(c);
}

static int scenario(void *arg)
{
	hm_auto(counter) *c = NULL;
	struct hm_err e;
	uint64_t n;

	(void)arg;
	if (counter_open(temp_path("swept"), 0, &c, &e) < 0)
		return -1;
	return counter_take(c, &n, &e);
}

static void allocation_failures(void **state)
{
	(void)state;
	/* A swallowed one is the read of the old file, which then counts as broken. */
	assert_int_equal(sweep_run(scenario, NULL).leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
		TEST(numbers_rise_and_a_crash_skips_the_rest_of_a_block),
		TEST(a_block_is_never_given_before_it_is_on_disk),
		TEST(refill_keeps_half_a_block_in_hand),
		TEST(a_full_disk_has_room_for_other_digits),
		TEST(a_slow_disk_holds_up_no_call),
		TEST(a_refill_that_hangs_at_the_end_is_left_alone),
		TEST(a_lost_or_broken_file_starts_above_what_is_in_use),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
