/* Whose processes kept a card at work, by a fake NVML. */
#include "gpu/busy.h"

#include <stdlib.h>

#include "abi/nvml.h"
#include "gpu/scan.h"
#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/gpu/fake_setup.h"

static struct fake *fake;
static struct gpu_driver *driver;
static struct gpu_busy_list list;
static const char card_0[] = "GPU-00000000-0000-0000-0000-000000000000";

static int setup(void **state)
{
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	return gpu_driver_open(FAKE_NVML, &driver, &e);
}

static int teardown(void **state)
{
	(void)state;
	gpu_busy_fini(&list);
	gpu_driver_close(HM_STEAL(driver));
	return 0;
}

static void add(unsigned pid, unsigned percent, unsigned long long at_us)
{
	fake->cards[0].uses[fake->cards[0].use_count++] = (struct fake_use) { pid, percent, at_us };
}

static void processes_and_the_end_of_their_samples(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(gpu_busy_read(driver, card_0, 0, &list, &e), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.until_us, 0);
	add(10, 30, 5000);
	add(11, 0, 5000);
	add(12, 100, 6000);
	assert_int_equal(gpu_busy_read(driver, card_0, 4999, &list, &e), 0);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.items[0].pid, 10);
	assert_int_equal(list.items[0].percent, 30);
	assert_int_equal(list.items[2].percent, 100);
	assert_int_equal(list.until_us, 6000);
	assert_int_equal(gpu_busy_read(driver, card_0, 5000, &list, &e), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(gpu_busy_read(driver, card_0, 6000, &list, &e), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.until_us, 0);
}

static void nonsense_is_left_out(void **state)
{
	struct hm_err e;

	(void)state;
	fake->cards[0].keeps_old = true;
	add(10, 101, 5000);
	add(11, UINT32_MAX, 9000);
	add(0, 50, 9000);
	add(12, 50, 4000);
	add(13, 40, 7000);
	assert_int_equal(gpu_busy_read(driver, card_0, 4000, &list, &e), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].pid, 13);
	assert_int_equal(list.until_us, 7000);
}

static void many_processes_fit(void **state)
{
	struct hm_err e;

	(void)state;
	for (unsigned i = 0; i < FAKE_PROCESSES; i++)
		add(1000 + i, i % 100, 5000 + i);
	for (unsigned round = 0; round < 2; round++) {
		fake->cards[0].use_calls = 0;
		assert_int_equal(gpu_busy_read(driver, card_0, 0, &list, &e), 0);
		assert_int_equal(list.count, FAKE_PROCESSES);
		assert_int_equal(list.items[299].pid, 1299);
		assert_int_equal(fake->cards[0].use_calls, round == 0 ? 2 : 1); /* the room is kept */
	}
}

static void the_newer_call_is_used_where_the_older_one_is_not_there(void **state)
{
	static const int missing[] = { NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND };
	struct hm_err e;

	(void)state;
	for (unsigned i = 0; i < HM_COUNT(missing); i++) {
		fake_node(fake, 1);
		add(10, 30, 5000);
		fake_fault(fake, "nvmlDeviceGetProcessUtilization", -1, missing[i]);
		assert_int_equal(gpu_busy_read(driver, card_0, 0, &list, &e), 0);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.items[0].pid, 10);
		assert_int_equal(list.items[0].percent, 30);
		assert_int_equal(list.until_us, 5000);
		fake_fault(fake, "nvmlDeviceGetProcessesUtilizationInfo", -1, NVML_ERROR_NOT_SUPPORTED);
		assert_int_equal(gpu_busy_read(driver, card_0, 0, &list, &e), -HM_EUNSUPPORTED);
		assert_int_equal(list.count, 0);
		assert_non_null(strstr(e.msg, card_0));
	}
}

static void errors_leave_an_empty_list(void **state)
{
	struct hm_err e;

	(void)state;
	add(10, 30, 5000);
	assert_int_equal(gpu_busy_read(driver, card_0, 0, &list, &e), 0);
	assert_int_equal(gpu_busy_read(driver, "GPU-none", 0, &list, &e), -HM_ENOTFOUND);
	assert_int_equal(list.count, 0);
	fake_fault(fake, "nvmlDeviceGetProcessUtilization", -1, NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(gpu_busy_read(driver, card_0, 0, &list, &e), -HM_EIO);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.until_us, 0);
}

static void an_old_library_does_not_tell(void **state)
{
	struct fake *old_fake = fake_load(FAKE_NVML_OLD);
	hm_auto(gpu_driver) *old = NULL;
	struct hm_err e;

	(void)state;
	fake_node(old_fake, 1);
	assert_int_equal(gpu_driver_open(FAKE_NVML_OLD, &old, &e), 0);
	assert_int_equal(gpu_busy_read(old, card_0, 0, &list, &e), -HM_EUNSUPPORTED);
}

static int read_once(void *arg)
{
	struct gpu_busy_list own = { .items = NULL };
	struct hm_err e;
	int r = gpu_busy_read(arg, card_0, 0, &own, &e);

	assert_true(r == 0 || own.count == 0);
	gpu_busy_fini(&own);
	return r;
}

static void allocation_failures(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FAKE_PROCESSES; i++)
		add(1000 + i, 1, 5000);
	sweep_check("gpu_busy_read", read_once, driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(processes_and_the_end_of_their_samples),
		TEST(nonsense_is_left_out),
		TEST(many_processes_fit),
		TEST(the_newer_call_is_used_where_the_older_one_is_not_there),
		TEST(errors_leave_an_empty_list),
		TEST(an_old_library_does_not_tell),
		TEST(allocation_failures),
	};

	fake = fake_load(FAKE_NVML);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
