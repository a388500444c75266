#include "gpu/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi/nvml.h"
#include "harness/sweep.h"
#include "unit/gpu/fake_setup.h"

static const char card_0[] = "GPU-00000000-0000-0000-0000-000000000000";

static struct gpu_driver *open_fake(const char *path)
{
	struct gpu_driver *d = NULL;
	struct hm_err e;

	if (gpu_driver_open(path, &d, &e) < 0)
		fail_msg("%s", e.msg);
	return d;
}

static void test_processes(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	struct gpu_process found[8];
	size_t count = 99;
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	assert_int_equal(gpu_processes(d, card_0, found, 8, &count, &e), 0);
	assert_int_equal(count, 0);
	fake->cards[0].compute[0] = (struct fake_process) { 100, 1 << 20 };
	fake->cards[0].compute[1] = (struct fake_process) { 200, NVML_VALUE_NOT_AVAILABLE };
	fake->cards[0].compute_count = 2;
	fake->cards[0].graphics[0] = (struct fake_process) { 100, 1 << 20 };
	fake->cards[0].graphics[1] = (struct fake_process) { 300, 2 << 20 };
	fake->cards[0].graphics_count = 2;
	assert_int_equal(gpu_processes(d, card_0, found, 8, &count, &e), 0);
	assert_int_equal(count, 3);
	assert_int_equal(found[0].pid, 100);
	assert_int_equal(found[0].used_bytes, 1 << 20);
	assert_true(found[1].used_bytes == UINT64_MAX);
	assert_int_equal(found[2].pid, 300);
	/* less room than processes: filled as far as it goes */
	memset(found, 0, sizeof found);
	assert_int_equal(gpu_processes(d, card_0, found, 1, &count, &e), 0);
	assert_int_equal(count, 3);
	assert_int_equal(found[0].pid, 100);
	assert_int_equal(found[1].pid, 0);
	/* graphics is a bonus */
	fake_fault(fake, "nvmlDeviceGetGraphicsRunningProcesses_v3", -1, NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpu_processes(d, card_0, found, 8, &count, &e), 0);
	assert_int_equal(count, 2);
}

static void test_many_processes(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	struct gpu_process *found = calloc(FAKE_PROCESSES, sizeof *found);
	size_t count = 0;
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	for (unsigned i = 0; i < FAKE_PROCESSES; i++)
		fake->cards[0].compute[i] = (struct fake_process) { 1000 + i, i };
	fake->cards[0].compute_count = FAKE_PROCESSES;
	assert_int_equal(gpu_processes(d, card_0, found, FAKE_PROCESSES, &count, &e), 0);
	assert_int_equal(count, FAKE_PROCESSES);
	assert_int_equal(found[FAKE_PROCESSES - 1].pid, 1000 + FAKE_PROCESSES - 1);
	free(found);
}

static void test_old_library(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML_OLD);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML_OLD);
	struct gpu_process found[8];
	uint64_t total, used;
	unsigned busy, memory;
	size_t count = 0;
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	fake->cards[0].compute[0] = (struct fake_process) { 100, 5 };
	fake->cards[0].compute[1] = (struct fake_process) { 200, 6 };
	fake->cards[0].compute_count = 2;
	assert_int_equal(gpu_processes(d, card_0, found, 8, &count, &e), 0);
	assert_int_equal(count, 2);
	assert_int_equal(found[1].pid, 200);
	assert_int_equal(found[1].used_bytes, 6);
	assert_int_equal(gpu_memory(d, card_0, &total, &used, &e), 0);
	assert_int_equal(used, 1500ull << 20); /* cannot tell what the driver keeps */
	assert_int_equal(gpu_utilization(d, card_0, &busy, &memory, &e), -HM_EUNSUPPORTED);
}

static void test_memory_and_utilization(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	uint64_t total = 0, used = 0;
	unsigned busy = 0, memory = 0;
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	fake->cards[0].busy = 73;
	fake->cards[0].memory_busy = 12;
	assert_int_equal(gpu_memory(d, card_0, &total, &used, &e), 0);
	assert_int_equal(total, 46068ull << 20);
	assert_int_equal(used, 1000ull << 20);
	assert_int_equal(gpu_utilization(d, card_0, &busy, &memory, &e), 0);
	assert_int_equal(busy, 73);
	assert_int_equal(memory, 12);
}

static void test_errors(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	struct gpu_process found[1];
	uint64_t total, used;
	unsigned busy, memory;
	size_t count = 5;
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	assert_int_equal(gpu_memory(d, "GPU-none", &total, &used, &e), -HM_ENOTFOUND);
	assert_string_equal(e.msg, "no GPU GPU-none");
	fake_fault(fake, "nvmlDeviceGetComputeRunningProcesses_v3", -1, NVML_ERROR_GPU_IS_LOST);
	fake_fault(fake, "nvmlDeviceGetMemoryInfo", -1, NVML_ERROR_NOT_SUPPORTED);
	fake_fault(fake, "nvmlDeviceGetMemoryInfo_v2", -1, NVML_ERROR_NOT_SUPPORTED);
	fake_fault(fake, "nvmlDeviceGetUtilizationRates", -1, NVML_ERROR_UNKNOWN);
	assert_int_equal(gpu_processes(d, card_0, found, 1, &count, &e), -HM_EIO);
	assert_int_equal(count, 0);
	assert_non_null(strstr(e.msg, card_0));
	assert_int_equal(gpu_memory(d, card_0, &total, &used, &e), -HM_EUNSUPPORTED);
	assert_int_equal(gpu_utilization(d, card_0, &busy, &memory, &e), -HM_EIO);
	fake_node(fake, 1);
	fake_fault(fake, "nvmlDeviceGetHandleByUUID", -1, NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(gpu_memory(d, card_0, &total, &used, &e), -HM_EIO);
}

static int sweep_processes(void *arg)
{
	struct gpu_process found[1];
	size_t count = 0;
	struct hm_err e;

	return gpu_processes(arg, card_0, found, 1, &count, &e);
}

static void test_sweep(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML), *fake_old = fake_load(FAKE_NVML_OLD);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML), *old = open_fake(FAKE_NVML_OLD);

	(void)state;
	fake_node(fake, 1);
	fake_node(fake_old, 1);
	sweep_check("gpu_processes", sweep_processes, d);
	sweep_check("gpu_processes, old library", sweep_processes, old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),   cmocka_unit_test(test_many_processes),
		cmocka_unit_test(test_old_library), cmocka_unit_test(test_memory_and_utilization),
		cmocka_unit_test(test_errors),      cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
