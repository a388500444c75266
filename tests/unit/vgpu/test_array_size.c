#include "vgpu/array_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/macros.h"

/* The sizes are worked out by hand: rows to 64 bytes, more than one row to 8, the sum to 65,536. */
static const struct {
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned levels;
	uint64_t want;
} cases[] = {
	{ { 1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, 65536 },
	{ { 16384, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, 1, 65536 },
	{ { 16385, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, 1, 131072 },
	{ { 100, 1169, 0, CU_AD_FORMAT_SIGNED_INT8, 4, 0 }, 1, 589824 }, /* 448 * 1,176 = 526,848 */
	{ { 128, 128, 128, CU_AD_FORMAT_FLOAT, 4, 0 }, 1, 33554432 },
	{ { 64, 64, 10, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_LAYERED }, 1, 196608 }, /* 163,840 */
	{ { 256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 9, 131072 },          /* 90,688 */
	{ { 256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 4000000000U, 131072 },
	{ { 256, 256, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED }, 2, 327680 }, /* 4 * (65,536 + 16,384) */
	{ { 256, 256, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 2, 327680 }, /* 4 * 65,536 + 2 * 16,384 = 294,912 */
	{ { 256, 256, 0, 0x97, 1, 0 }, 1, 1048576 },                      /* compressed: 16 bytes an element at most */
	{ { 256, 256, 0, CU_AD_FORMAT_FLOAT, 4000000000U, 0 }, 1, 1048576 },
	{ { SIZE_MAX, 1, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, UINT64_MAX },
	{ { 64, SIZE_MAX, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, UINT64_MAX },
	{ { (size_t)1 << 40, (size_t)1 << 40, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, UINT64_MAX },
	{ { (size_t)1 << 30, (size_t)1 << 30, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, UINT64_MAX },
};

static void test_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint64_t got = array_size(&cases[i].desc, cases[i].levels);

		if (got != cases[i].want)
			fail_msg("case %zu: %llu instead of %llu", i, (unsigned long long)got,
				 (unsigned long long)cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sizes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
