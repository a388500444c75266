#include "gpu/vitals.h"

#include "abi/nvml.h"
#include "gpu/scan.h"
#include "harness/unit.h"
#include "unit/gpu/fake_setup.h"

static struct fake *fake;
static struct gpu_driver *gpu;

static int setup(void **state)
{
	struct hm_err e;

	(void)state;
	fake = fake_load(FAKE_NVML);
	fake_node(fake, 2);
	return gpu_driver_open(FAKE_NVML, &gpu, &e);
}

static int teardown(void **state)
{
	(void)state;
	gpu_driver_close(HM_STEAL(gpu));
	return 0;
}

static struct gpu_vitals read_first(void)
{
	struct gpu_vitals v;

	gpu_vitals_read(gpu, fake->cards[0].uuid, &v);
	return v;
}

static void a_well_card(void **state)
{
	struct gpu_vitals v;

	(void)state;
	fake->cards[0].ecc_uncorrected = 7;
	v = read_first();
	assert_int_equal(v.answer, GPU_ANSWERS);
	assert_int_equal(v.action, GPU_ACTION_UNKNOWN);
	assert_false(v.rows_pending || v.rows_failed);
	assert_true(v.counts_ecc);
	assert_int_equal(v.uncorrected, 7);
	assert_string_equal(v.why, "");
}

static void what_the_driver_asks_for(void **state)
{
	(void)state;
	fake->cards[0].action = NVML_GPU_RECOVERY_ACTION_NODE_REBOOT;
	assert_int_equal(read_first().action, 2);
	assert_string_equal(gpu_action_text(2), "node reboot");
	assert_non_null(gpu_action_text(77));
	fake_fault(fake, "nvmlDeviceGetFieldValues", 0, NVML_ERROR_UNKNOWN);
	assert_int_equal(read_first().action, GPU_ACTION_UNKNOWN);
}

static void rows_and_pages(void **state)
{
	struct gpu_vitals v;

	(void)state;
	fake->cards[0].rows_pending = 1;
	v = read_first();
	assert_true(v.rows_pending && !v.rows_failed);
	fake->cards[0].rows_pending = 0;
	fake->cards[0].rows_failed = 1;
	v = read_first();
	assert_true(!v.rows_pending && v.rows_failed);
	fake->cards[0].retires_pages = true;
	assert_false(read_first().rows_failed);
	fake->cards[0].rows_pending = 1;
	assert_true(read_first().rows_pending);
}

static void answers(void **state)
{
	static const struct {
		const char *call;
		int result;
		enum gpu_answer answer;
	} rows[] = {
		{ "nvmlDeviceGetHandleByUUID", NVML_ERROR_GPU_IS_LOST, GPU_LOST },
		{ "nvmlDeviceGetHandleByUUID", NVML_ERROR_NOT_FOUND, GPU_LOST },
		{ "nvmlDeviceGetHandleByUUID", NVML_ERROR_UNINITIALIZED, GPU_DRIVER_GONE },
		{ "nvmlDeviceGetMemoryInfo", NVML_ERROR_GPU_IS_LOST, GPU_LOST },
		{ "nvmlDeviceGetMemoryInfo", NVML_ERROR_RESET_REQUIRED, GPU_LOST },
		{ "nvmlDeviceGetMemoryInfo", NVML_ERROR_DRIVER_NOT_LOADED, GPU_DRIVER_GONE },
		{ "nvmlDeviceGetMemoryInfo", NVML_ERROR_UNKNOWN, GPU_ERRS },
		{ "nvmlDeviceGetMemoryInfo", NVML_ERROR_TIMEOUT, GPU_ERRS },
		{ "nvmlDeviceGetMemoryInfo", NVML_ERROR_NOT_SUPPORTED, GPU_ANSWERS },
		{ "nvmlDeviceGetRemappedRows", NVML_ERROR_UNKNOWN, GPU_ANSWERS },
		{ "nvmlDeviceGetTotalEccErrors", NVML_ERROR_NOT_SUPPORTED, GPU_ANSWERS },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct gpu_vitals v;

		fake_node(fake, 2);
		fake_fault(fake, rows[i].call, 0, rows[i].result);
		v = read_first();
		if (v.answer != rows[i].answer || (v.answer == GPU_ANSWERS) != (v.why[0] == '\0'))
			fail_msg("row %zu: %d, \"%s\"", i, (int)v.answer, v.why);
		gpu_vitals_read(gpu, fake->cards[1].uuid, &v);
		assert_int_equal(v.answer, GPU_ANSWERS);
	}
	struct gpu_vitals none;
	gpu_vitals_read(gpu, "GPU-none", &none);
	assert_int_equal(none.answer, GPU_LOST);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = { TEST(a_well_card), TEST(what_the_driver_asks_for), TEST(rows_and_pages),
					    TEST(answers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
