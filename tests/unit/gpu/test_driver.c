#include "gpu/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "unit/gpu/fake_setup.h"

static void test_open(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	struct gpu_driver *d = NULL;
	struct hm_err e;

	(void)state;
	fake_node(fake, 1);
	if (gpu_driver_open(FAKE_NVML, &d, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(fake->inits, 1);
	gpu_driver_close(d);
	assert_int_equal(fake->inits, 0);
	gpu_driver_close(NULL);
}

static void test_refused(void **state)
{
	static const struct {
		const char *path;
		int init, code;
		const char *says;
	} rows[] = {
		{ "/nowhere/libnvidia-ml.so.1", 0, -HM_ENOTFOUND, "cannot load /nowhere/libnvidia-ml.so.1: " },
		{ "/etc/passwd", 0, -HM_ENOTFOUND, "cannot load /etc/passwd: " },
		{ "libc.so.6", 0, -HM_EUNSUPPORTED, "libc.so.6 has no nvmlInit_v2" },
		{ FAKE_NVML, NVML_ERROR_DRIVER_NOT_LOADED, -HM_EAGAIN, "nvmlInit: NVML says some error (9)" },
		{ FAKE_NVML, NVML_ERROR_LIB_RM_VERSION_MISMATCH, -HM_EAGAIN, "(18)" },
		{ FAKE_NVML, NVML_ERROR_UNKNOWN, -HM_EAGAIN, "(999)" },
		{ FAKE_NVML, NVML_ERROR_NO_PERMISSION, -HM_EPERM, "(4)" },
	};
	struct fake *fake = fake_load(FAKE_NVML);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct gpu_driver *d = NULL;
		struct hm_err e = { 0 };
		int r;

		fake_node(fake, 1);
		fake_fault(fake, "nvmlInit_v2", -1, rows[i].init);
		r = gpu_driver_open(rows[i].path, &d, &e);
		if (r != rows[i].code || strstr(e.msg, rows[i].says) == NULL)
			fail_msg("%s: %d, \"%s\"", rows[i].path, r, e.msg);
		assert_null(d);
		assert_int_equal(fake->inits, 0);
	}
}

static void test_error_texts(void **state)
{
	hm_auto(gpu_driver) *d = NULL, *old = NULL;
	struct hm_err e;

	(void)state;
	fake_node(fake_load(FAKE_NVML), 1);
	fake_node(fake_load(FAKE_NVML_OLD), 1);
	assert_int_equal(gpu_driver_open(FAKE_NVML, &d, &e), 0);
	assert_int_equal(gpu_driver_open(FAKE_NVML_OLD, &old, &e), 0);
	assert_int_equal(driver_error(d, NVML_ERROR_GPU_IS_LOST, "nvmlX", &e), -HM_EIO);
	assert_string_equal(e.msg, "nvmlX: NVML says GPU is lost (15)");
	assert_int_equal(driver_error(old, NVML_ERROR_NOT_SUPPORTED, "nvmlX", &e), -HM_EUNSUPPORTED);
	assert_string_equal(e.msg, "nvmlX: NVML says an error without a text (3)");
	assert_int_equal(driver_error(old, NVML_ERROR_FUNCTION_NOT_FOUND, "nvmlX", &e), -HM_EUNSUPPORTED);
	assert_string_equal(e.msg, "nvmlX: NVML says Function Not Found (13)");
	assert_int_equal(driver_error(d, NVML_ERROR_TIMEOUT, "nvmlX", &e), -HM_EAGAIN);
}

static int sweep_open(void *arg)
{
	hm_auto(gpu_driver) *d = NULL;
	struct hm_err e;
	int r = gpu_driver_open(FAKE_NVML, &d, &e);

	(void)arg;
	return r < 0 ? r : gpu_driver_set_sysfs(d, "/sys", &e);
}

static void test_sweep(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);

	(void)state;
	fake_node(fake, 1);
	sweep_check("gpu_driver_open", sweep_open, NULL);
	assert_int_equal(fake->inits, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_error_texts),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
