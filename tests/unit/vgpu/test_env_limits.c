#include "vgpu/env_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"

static const struct size {
	const char *text;
	bool good;
	uint64_t bytes;
} sizes[] = {
	{ "0", true, 0 },
	{ "1", true, 1 },
	{ "1024k", true, 1048576 },
	{ "1024K", true, 1048576 },
	{ "3000m", true, 3145728000 },
	{ "3000M", true, 3145728000 },
	{ "16g", true, 17179869184 },
	{ "16G", true, 17179869184 },
	{ "262143g", true, 281473902968832 },
	{ "281474976710655", true, 281474976710655 },
	{ "262144g", false, 0 },
	{ "281474976710656", false, 0 },
	{ "18446744073709551616", false, 0 },
	{ "18014398509481985k", false, 0 },
	{ "", false, 0 },
	{ "g", false, 0 },
	{ "abc", false, 0 },
	{ "3000MB", false, 0 },
	{ "010m", false, 0 },
	{ "00", false, 0 },
	{ "-1", false, 0 },
	{ "+1", false, 0 },
	{ "0.5g", false, 0 },
	{ "1Gi", false, 0 },
	{ "1gb", false, 0 },
	{ "0x10m", false, 0 },
	{ " 1g", false, 0 },
	{ "1g ", false, 0 },
	{ "1 g", false, 0 },
	{ "1t", false, 0 },
};

static void reads_sizes_strictly(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(sizes); i++) {
		uint64_t bytes = 0;
		bool good = env_size(sizes[i].text, &bytes);

		if (good != sizes[i].good || bytes != sizes[i].bytes)
			fail_msg("\"%s\": %d, %lu", sizes[i].text, good, (unsigned long)bytes);
	}
}

static void reads_the_environment(void **state)
{
	char *const environment[] = {
		"PATH=/bin",
		"CUDA_DEVICE_MEMORY_LIMITS=7",
		"CUDA_DEVICE_MEMORY_LIMIT=1g",
		"CUDA_DEVICE_MEMORY_LIMIT_0=",
		"CUDA_DEVICE_MEMORY_LIMIT_1=2g",
		"CUDA_DEVICE_MEMORY_LIMIT_15=3k",
		NULL,
	};
	struct env_limits l;
	struct hm_err e;

	(void)state;
	assert_int_equal(env_limits_read(environment, &l, &e), 0);
	assert_true(l.any);
	assert_int_equal(l.all, 1 << 30);
	assert_int_equal(l.card[0], 0);
	assert_int_equal(l.card[1], UINT64_C(2) << 30);
	assert_int_equal(l.card[15], 3072);
}

static void nothing_set_is_no_limit(void **state)
{
	char *const environment[] = { "PATH=/bin", "CUDA_DEVICE_MEMORY_LIMIT=0", NULL };
	struct env_limits l;

	(void)state;
	assert_int_equal(env_limits_read(environment, &l, NULL), 0);
	assert_false(l.any);
	assert_int_equal(env_limits_read(NULL, &l, NULL), 0);
	assert_false(l.any);
}

static void names_the_bad_one(void **state)
{
	char *const environment[] = { "CUDA_DEVICE_MEMORY_LIMIT=1g", "CUDA_DEVICE_MEMORY_LIMIT_3=010m", NULL };
	struct env_limits l;
	struct hm_err e;

	(void)state;
	assert_int_equal(env_limits_read(environment, &l, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "CUDA_DEVICE_MEMORY_LIMIT_3=010m is not a size such as 4096m");
}

static void reads_compute_limits(void **state)
{
	char *const environment[] = {
		"CUDA_DEVICE_SM_LIMIT=30",           "CUDA_DEVICE_SM_LIMIT_1=100",        "CUDA_DEVICE_SM_LIMIT_2=0",
		"CUDA_DEVICE_SM_LIMIT_3=7",          "CUDA_DEVICE_SM_LIMIT_4=4294967295", "CUDA_TASK_PRIORITY=0",
		"GPU_CORE_UTILIZATION_POLICY=FORCE", "CUDA_OVERSUBSCRIBE=true",           NULL,
	};
	static const unsigned cores[] = { 30, 100, 30, 7, 100, 30 };
	struct env_limits l;

	(void)state;
	assert_int_equal(env_limits_read(environment, &l, NULL), 0);
	assert_true(l.any);
	assert_true(l.any_cores);
	for (unsigned i = 0; i < HM_COUNT(cores); i++)
		assert_int_equal(env_cores_of(&l, i), cores[i]);
	assert_int_equal(env_cores_of(&l, 4711), 30);
	assert_int_equal(env_memory_of(&l, 0), 0);
	assert_int_equal(l.priority, 0);
	assert_int_equal(l.policy, LIMIT_POLICY_FORCE);
	assert_true(l.oversubscribe);
}

static void what_is_no_compute_limit(void **state)
{
	static const char *const variables[] = { "CUDA_DEVICE_SM_LIMIT_0=", "CUDA_DEVICE_SM_LIMIT=0",
						 "CUDA_DEVICE_SM_LIMIT=100", "CUDA_DEVICE_SM_LIMIT_7=250" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(variables); i++) {
		char *const environment[] = { (char *)variables[i], "GPU_CORE_UTILIZATION_POLICY=never", NULL };
		struct env_limits l;

		assert_int_equal(env_limits_read(environment, &l, NULL), 0);
		assert_false(l.any);
		assert_int_equal(env_cores_of(&l, 0), 100);
		assert_int_equal(l.priority, 1);
		assert_int_equal(l.policy, LIMIT_POLICY_DEFAULT);
		assert_false(l.oversubscribe);
	}
}

static const struct word {
	const char *text, *error; /* NULL: good */
} words[] = {
	{ "CUDA_DEVICE_SM_LIMIT=abc", "CUDA_DEVICE_SM_LIMIT=abc is not a percentage such as 30" },
	{ "CUDA_DEVICE_SM_LIMIT_15=30%", "CUDA_DEVICE_SM_LIMIT_15=30% is not a percentage such as 30" },
	{ "CUDA_DEVICE_SM_LIMIT=030", "CUDA_DEVICE_SM_LIMIT=030 is not a percentage such as 30" },
	{ "CUDA_DEVICE_SM_LIMIT=-1", "CUDA_DEVICE_SM_LIMIT=-1 is not a percentage such as 30" },
	{ "CUDA_DEVICE_SM_LIMIT=0.5", "CUDA_DEVICE_SM_LIMIT=0.5 is not a percentage such as 30" },
	{ "CUDA_DEVICE_SM_LIMIT=1k", "CUDA_DEVICE_SM_LIMIT=1k is not a percentage such as 30" },
	{ "CUDA_DEVICE_SM_LIMIT=4294967296", "CUDA_DEVICE_SM_LIMIT=4294967296 is not a percentage such as 30" },
	{ "CUDA_TASK_PRIORITY=", NULL },
	{ "CUDA_TASK_PRIORITY=1", NULL },
	{ "CUDA_TASK_PRIORITY=2", "CUDA_TASK_PRIORITY=2 is not 0 or 1" },
	{ "CUDA_TASK_PRIORITY=high", "CUDA_TASK_PRIORITY=high is not 0 or 1" },
	{ "GPU_CORE_UTILIZATION_POLICY=default", NULL },
	{ "GPU_CORE_UTILIZATION_POLICY=disable", NULL },
	{ "GPU_CORE_UTILIZATION_POLICY=Force", "GPU_CORE_UTILIZATION_POLICY=Force is not default, force or disable" },
	{ "CUDA_OVERSUBSCRIBE=false", NULL },
	{ "CUDA_OVERSUBSCRIBE=1", NULL },
	{ "CUDA_OVERSUBSCRIBE=yes", "CUDA_OVERSUBSCRIBE=yes is not true or false" },
};

static void other_words_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(words); i++) {
		char *const environment[] = { "CUDA_DEVICE_MEMORY_LIMIT=1g", (char *)words[i].text, NULL };
		struct env_limits l;
		struct hm_err e = { 0 };
		int r = env_limits_read(environment, &l, &e);

		assert_int_equal(r, words[i].error == NULL ? 0 : -HM_EINVAL);
		assert_string_equal(e.msg, words[i].error == NULL ? "" : words[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_sizes_strictly),    cmocka_unit_test(reads_the_environment),
		cmocka_unit_test(nothing_set_is_no_limit), cmocka_unit_test(names_the_bad_one),
		cmocka_unit_test(reads_compute_limits),    cmocka_unit_test(what_is_no_compute_limit),
		cmocka_unit_test(other_words_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
