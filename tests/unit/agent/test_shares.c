/* Passes over containers made by hand: a fake NVML says who was at work, a /proc of the test's whose they are. */
#include "agent/processes/shares.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "agent/processes/pid_owners.h"
#include "harness/mounts.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "region/bucket.h"
#include "region/map.h"
#include "region/region.h"
#include "unit/gpu/fake_setup.h"

#define MS UINT64_C(1000000)
#define PERIOD_US 166667
#define ALL_SAMPLES 12

static struct fake *fake;
static struct gpu_driver *gpu;
static struct agent_paths paths;
static char proc[300];
static struct shares *shares;
static uint64_t now_ns, wall_us;

static const char *gpu_name(unsigned card)
{
	return fake->cards[card].uuid;
}

static int setup(void **state)
{
	static char dir[300];
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct hm_err e;

	if (temp_setup(state) < 0)
		return -1;
	fake_node(fake, 2);
	agent_options_init(&o, table);
	snprintf(dir, sizeof dir, "%s", temp_path("s"));
	snprintf(proc, sizeof proc, "%s", temp_path("proc"));
	o.state_dir = dir;
	now_ns = 1000000 * MS;
	wall_us = UINT64_C(1800000000000000);
	if (agent_paths_init(&paths, &o, &e) < 0 || gpu_driver_open(FAKE_NVML, &gpu, &e) < 0)
		return -1;
	return shares_new(&paths, proc, false, &shares, &e);
}

static int teardown(void **state)
{
	shares_free(HM_STEAL(shares));
	gpu_driver_close(HM_STEAL(gpu));
	return temp_teardown(state);
}

static void make_folder(const char *path)
{
	struct hm_err e;

	if (file_mkdirs(path, 0755, &e) < 0)
		fail_msg("%s", e.msg);
}

/* A container on the first card, or both; its one process is pid 100 + number. */
static void make_container(unsigned number, unsigned cards, unsigned cores, const char *lines)
{
	char text[2048], path[300];
	struct limits l = { .count = cards, .priority = 1 };
	struct hm_err e;
	size_t n = 0;

	snprintf(path, sizeof path, "s/alloc/%u/usage", number);
	make_folder(temp_path(path));
	snprintf(text, sizeof text, "%s", mounts_line(temp_path(path), "/run/hami-vgpu/usage"));
	snprintf(path, sizeof path, "proc/%u", 100 + number);
	make_folder(temp_path(path));
	snprintf(path, sizeof path, "proc/%u/mountinfo", 100 + number);
	temp_write(path, text);
	n = (size_t)snprintf(text, sizeof text, "hami-vgpu-limits 1\n");
	for (unsigned i = 0; i < cards; i++) {
		n += (size_t)snprintf(text + n, sizeof text - n, "gpu=%s memory=1000 cores=%u\n", gpu_name(i), cores);
		l.cards[i] = (struct limit_card) { "", 1000, cores };
		snprintf(l.cards[i].uuid, sizeof l.cards[i].uuid, "%s", gpu_name(i));
	}
	snprintf(text + n, sizeof text - n, "%send\n", lines);
	snprintf(path, sizeof path, "s/alloc/%u/limits", number);
	temp_write(path, text);
	snprintf(path, sizeof path, "s/alloc/%u/usage/region", number);
	assert_int_equal(region_create(temp_path(path), &l, &e), 0);
}

static struct region_map map_region(unsigned number)
{
	char path[300];
	struct region_map m;
	struct hm_err e;

	snprintf(path, sizeof path, "s/alloc/%u/usage/region", number);
	if (region_map_file(temp_path(path), &m, &e) < 0)
		fail_msg("%s", e.msg);
	return m;
}

static void set(unsigned first, unsigned last)
{
	struct shares_container all[64];
	size_t count = 0;

	for (unsigned number = first; number <= last; number++)
		all[count++] = (struct shares_container) { number, false };
	shares_set(shares, all, count);
}

static void busy(unsigned card, unsigned pid, unsigned percent)
{
	struct fake_card *c = &fake->cards[card];

	c->uses[c->use_count++] = (struct fake_use) { pid, percent, wall_us };
}

static void pass(void)
{
	shares_read(shares, gpu);
	shares_apply(shares, now_ns, wall_us);
	for (unsigned i = 0; i < 2; i++)
		fake->cards[i].use_count = 0;
	now_ns += PERIOD_US * 1000;
	wall_us += PERIOD_US;
}

static bool ahead(uint64_t at)
{
	return at > now_ns && at < now_ns + 4000 * MS;
}

/* Pids that share a place in the table of owners do not get mixed up. */
static void pids_are_told_apart(void **state)
{
	struct shares_container both[] = { { 1, false }, { 1 + PID_OWNERS, false } };
	struct region_map a, b;

	(void)state;
	make_container(1, 1, 30, "");
	make_container(1 + PID_OWNERS, 1, 70, "");
	a = map_region(1);
	b = map_region(1 + PID_OWNERS);
	shares_set(shares, both, 2);
	pass();
	assert_false(shares_at_work(shares));
	for (unsigned i = 0; i < 2; i++) {
		busy(0, 101, 50);
		pass();
		assert_true(shares_at_work(shares));
		assert_true(ahead(a.r->compute[0].open_until_ns));
		assert_int_equal(b.r->compute[0].open_until_ns, 0);
		busy(0, 101 + PID_OWNERS, 50);
		pass();
		assert_int_equal(a.r->compute[0].open_until_ns, 0);
		for (unsigned k = 0; k < 7; k++)
			pass();
		assert_true(ahead(b.r->compute[0].open_until_ns));
		assert_false(shares_at_work(shares));
	}
	region_unmap(&a);
	region_unmap(&b);
}

/* Two containers, both charged for all of the time, one of which had a third of the card, the other two. */
static void samples_reach_whom_they_are_of(void **state)
{
	struct region_map a, b;

	(void)state;
	make_container(1, 1, 30, "");
	make_container(2, 1, 70, "");
	a = map_region(1);
	b = map_region(2);
	set(1, 2);
	assert_true(shares_wanted(shares));
	for (unsigned i = 0; i < ALL_SAMPLES; i++) {
		a.r->compute[0].spans_ns += PERIOD_US * 1000;
		b.r->compute[0].spans_ns += PERIOD_US * 1000;
		busy(0, 101, 33);
		busy(0, 102, 66);
		pass();
	}
	assert_in_range(a.r->compute[0].alpha, BUCKET_ALPHA_ONE * 32 / 100, BUCKET_ALPHA_ONE * 34 / 100);
	assert_in_range(b.r->compute[0].alpha, BUCKET_ALPHA_ONE * 65 / 100, BUCKET_ALPHA_ONE * 67 / 100);
	assert_true(ahead(a.r->compute[0].alpha_until_ns));
	assert_int_equal(a.r->compute[0].open_until_ns, 0);
	region_unmap(&a);
	region_unmap(&b);
}

static void alone_is_open_until_another_works(void **state)
{
	struct region_map a, b;

	(void)state;
	make_container(1, 1, 30, "");
	make_container(2, 1, 70, "");
	a = map_region(1);
	b = map_region(2);
	set(1, 2);
	pass();
	assert_true(ahead(a.r->compute[0].open_until_ns) && ahead(b.r->compute[0].open_until_ns));
	busy(0, 101, 90);
	pass();
	assert_true(ahead(a.r->compute[0].open_until_ns));
	assert_int_equal(b.r->compute[0].open_until_ns, 0);
	b.r->compute[0].spans_ns += MS; /* it begins: seen before the driver says so */
	pass();
	assert_int_equal(a.r->compute[0].open_until_ns, 0);
	for (unsigned i = 0; i < 8; i++) {
		busy(0, 101, 90);
		pass();
	}
	assert_true(ahead(a.r->compute[0].open_until_ns));
	busy(0, 999, 5); /* of no container */
	pass();
	assert_int_equal(a.r->compute[0].open_until_ns, 0);
	region_unmap(&a);
	region_unmap(&b);
}

static void a_scribble_lasts_until_the_next_pass(void **state)
{
	struct region_map a;

	(void)state;
	make_container(1, 1, 30, "policy=force\n");
	a = map_region(1);
	set(1, 1);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t noise = i * UINT64_C(0x9e3779b97f4a7c15);

		a.r->compute[0].spans_ns = noise;
		a.r->compute[0].error_ns = ~noise;
		a.r->compute[0].open_until_ns = now_ns + noise % (5000 * MS);
		a.r->compute[0].hold_until_ns = noise << 3;
		a.r->compute[0].alpha = noise >> 9;
		busy(0, 101, 50);
		pass();
		assert_int_equal(a.r->compute[0].open_until_ns, 0);
		assert_int_equal(a.r->compute[0].hold_until_ns, 0);
		assert_true(a.r->compute[0].alpha <= BUCKET_ALPHA_MAX);
	}
	region_unmap(&a);
}

static void the_error_goes_on_where_the_last_agent_left_it(void **state)
{
	struct region_map a;

	(void)state;
	make_container(1, 1, 30, "");
	a = map_region(1);
	a.r->compute[0].error_ns = a.r->compute[0].settled_ns = (uint64_t)-123;
	set(1, 1);
	pass();
	assert_int_equal((int64_t)a.r->compute[0].error_ns, -123);
	region_unmap(&a);
}

static void priorities(void **state)
{
	struct region_map a, b;

	(void)state;
	make_container(1, 2, 50, "priority=0\n");
	make_container(2, 1, 100, "priority=1\n");
	a = map_region(1);
	b = map_region(2);
	set(1, 2);
	assert_true(shares_wanted(shares));
	busy(1, 101, 50); /* the other card */
	busy(0, 102, 50);
	pass();
	assert_int_equal(b.r->compute[0].hold_until_ns, 0);
	busy(0, 101, 50);
	pass();
	assert_true(ahead(b.r->compute[0].hold_until_ns));
	assert_int_equal(a.r->compute[0].hold_until_ns, 0);
	for (unsigned i = 0; i < 7; i++)
		pass();
	assert_int_equal(b.r->compute[0].hold_until_ns, 0);
	region_unmap(&a);
	region_unmap(&b);
}

static void held_from_elsewhere(void **state)
{
	struct shares_container c = { 1, true };
	struct region_map a;

	(void)state;
	make_container(1, 1, 100, "");
	a = map_region(1);
	shares_set(shares, &c, 1);
	assert_true(shares_wanted(shares));
	pass();
	assert_true(ahead(a.r->compute[0].hold_until_ns));
	region_unmap(&a);
}

static void nothing_to_limit_is_nothing_to_sample(void **state)
{
	(void)state;
	assert_false(shares_wanted(shares));
	make_container(1, 1, 100, "");
	make_container(2, 1, 30, "policy=disable\n");
	make_container(3, 2, 30, "");
	set(1, 2);
	assert_false(shares_wanted(shares));
	set(1, 3);
	assert_true(shares_wanted(shares));
	set(1, 2);
	assert_false(shares_wanted(shares));
	set(1, 1);
	fake->cards[0].use_calls = 0;
	pass();
	assert_int_equal(fake->cards[0].use_calls, 0);
}

static uint64_t told[3][2]; /* by container and card */

static void keep_told(void *arg, uint64_t number, const char *uuid, uint64_t busy_ns)
{
	assert_ptr_equal(arg, told);
	assert_in_range(number, 1, 2);
	told[number][strcmp(uuid, gpu_name(1)) == 0] = busy_ns;
}

/* Half of each of four periods, but for the first sample, of which nobody knows for how long it stands. */
static void who_was_at_work_is_told_without_limits_too(void **state)
{
	struct hm_err e;

	(void)state;
	shares_free(shares);
	assert_int_equal(shares_new(&paths, proc, true, &shares, &e), 0);
	make_container(1, 2, 100, "");
	make_container(2, 1, 30, "policy=disable\n");
	set(1, 2);
	assert_true(shares_wanted(shares));
	for (unsigned i = 0; i < 5; i++) {
		busy(0, 101, 50);
		busy(1, 101, 20);
		pass();
	}
	memset(told, 0xff, sizeof told);
	shares_tell_busy(shares, keep_told, told);
	assert_int_equal(told[1][0], 50 * MS + 4 * PERIOD_US * 1000 / 2);
	assert_int_equal(told[1][1], 20 * MS + 4 * PERIOD_US * 1000 / 5);
	assert_int_equal(told[2][0], 0);
}

/* What cannot be had leaves nothing open, and comes back when it can. */
static void what_is_missing_is_met_again(void **state)
{
	struct region_map a;
	char path[300];

	(void)state;
	make_container(1, 1, 30, "");
	a = map_region(1);
	set(1, 1);
	pass();
	assert_true(ahead(a.r->compute[0].open_until_ns));
	shares_read(shares, NULL);
	shares_apply(shares, now_ns, wall_us);
	assert_int_equal(a.r->compute[0].open_until_ns, 0);
	fake_fault(fake, "nvmlDeviceGetProcessUtilization", -1, NVML_ERROR_GPU_IS_LOST);
	pass();
	assert_int_equal(a.r->compute[0].open_until_ns, 0);
	assert_null(shares_untold(shares));
	memset(fake->faults, 0, sizeof fake->faults);
	pass();
	assert_true(ahead(a.r->compute[0].open_until_ns));
	/* Its region is replaced, and its limits. */
	region_unmap(&a);
	snprintf(path, sizeof path, "s/alloc/%u/usage/region", 1);
	assert_int_equal(unlink(temp_path(path)), 0);
	pass();
	set(1, 1);
	pass();
	snprintf(path, sizeof path, "s/alloc/%u/limits", 1);
	assert_int_equal(unlink(temp_path(path)), 0);
	set(1, 1);
	assert_false(shares_wanted(shares));
	temp_write("s/alloc/1/limits", "no limit file");
	set(1, 1);
	assert_false(shares_wanted(shares));
}

static void a_driver_that_does_not_tell_is_named_once(void **state)
{
	(void)state;
	make_container(1, 1, 30, "");
	set(1, 1);
	fake_fault(fake, "nvmlDeviceGetProcessUtilization", -1, NVML_ERROR_NOT_SUPPORTED);
	fake_fault(fake, "nvmlDeviceGetProcessesUtilizationInfo", -1, NVML_ERROR_NOT_SUPPORTED);
	pass();
	assert_string_equal(shares_untold(shares), gpu_name(0));
	pass();
	assert_null(shares_untold(shares));
}

/* After a pause a sample may stand for one period or for all of it: it is left out. */
static void samples_after_a_pause_are_left_out(void **state)
{
	struct region_map a;
	uint64_t alpha;

	(void)state;
	make_container(1, 1, 30, "policy=force\n");
	a = map_region(1);
	set(1, 1);
	for (unsigned i = 0; i < ALL_SAMPLES; i++) {
		a.r->compute[0].spans_ns += PERIOD_US * 1000;
		busy(0, 101, 50);
		busy(0, 999, 50);
		pass();
	}
	alpha = a.r->compute[0].alpha;
	assert_in_range(alpha, BUCKET_ALPHA_ONE * 49 / 100, BUCKET_ALPHA_ONE * 51 / 100);
	pass();
	pass();
	busy(0, 101, 100);
	pass();
	assert_int_equal(a.r->compute[0].alpha, alpha);
	region_unmap(&a);
}

/* The clock of the driver's stamps is set: samples go on. */
static void a_clock_that_is_set_back(void **state)
{
	struct region_map a;

	(void)state;
	make_container(1, 1, 30, "policy=force\n");
	a = map_region(1);
	set(1, 1);
	for (unsigned i = 0; i < 2 * ALL_SAMPLES; i++) {
		if (i == ALL_SAMPLES) {
			assert_in_range(a.r->compute[0].alpha, BUCKET_ALPHA_ONE * 49 / 100,
					BUCKET_ALPHA_ONE * 51 / 100);
			wall_us -= UINT64_C(3600000000);
		}
		a.r->compute[0].spans_ns += PERIOD_US * 1000;
		busy(0, 101, i < ALL_SAMPLES ? 50 : 100);
		busy(0, 999, i < ALL_SAMPLES ? 50 : 0);
		pass();
	}
	assert_in_range(a.r->compute[0].alpha, BUCKET_ALPHA_ONE * 80 / 100, BUCKET_ALPHA_ONE);
	region_unmap(&a);
}

static int scenario(void *arg)
{
	struct shares_container all[] = { { 1, false }, { 2, false } };
	hm_auto(shares) *s = NULL;
	struct hm_err e;

	(void)arg;
	if (shares_new(&paths, temp_path("proc"), false, &s, &e) < 0)
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		shares_set(s, all, HM_COUNT(all));
		shares_read(s, gpu);
		shares_apply(s, now_ns, wall_us);
	}
	return 0;
}

static void allocation_failures(void **state)
{
	(void)state;
	make_container(1, 2, 30, "");
	make_container(2, 1, 30, "");
	busy(0, 101, 50);
	assert_int_equal(sweep_run(scenario, NULL).leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(samples_reach_whom_they_are_of),
		TEST(pids_are_told_apart),
		TEST(alone_is_open_until_another_works),
		TEST(a_scribble_lasts_until_the_next_pass),
		TEST(the_error_goes_on_where_the_last_agent_left_it),
		TEST(priorities),
		TEST(held_from_elsewhere),
		TEST(nothing_to_limit_is_nothing_to_sample),
		TEST(who_was_at_work_is_told_without_limits_too),
		TEST(what_is_missing_is_met_again),
		TEST(a_driver_that_does_not_tell_is_named_once),
		TEST(samples_after_a_pause_are_left_out),
		TEST(a_clock_that_is_set_back),
		TEST(allocation_failures),
	};

	fake = fake_load(FAKE_NVML);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
