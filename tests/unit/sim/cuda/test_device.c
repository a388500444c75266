#include <string.h>

#include "core/macros.h"
#include "fixture.h"

static void count_and_names(void **state HM_UNUSED)
{
	char name[64], short_name[6];
	int count = 0;
	CUdevice dev = -1;

	assert_cuda(cuDeviceGetCount(&count));
	assert_int_equal(count, CARDS);
	assert_cuda(cuDeviceGet(&dev, 1));
	assert_int_equal(dev, 1);
	assert_int_equal(cuDeviceGet(&dev, CARDS), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGet(&dev, -1), CUDA_ERROR_INVALID_DEVICE);
	assert_cuda(cuDeviceGetName(name, sizeof name, 0));
	assert_string_equal(name, "Tesla T4");
	assert_cuda(cuDeviceGetName(short_name, sizeof short_name, 0));
	assert_string_equal(short_name, "Tesla");
	assert_int_equal(cuDeviceGetName(name, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void identity(void **state HM_UNUSED)
{
	static const unsigned char want[16] = { 0x6b, 0x7e, 0x0d, 0x5c, 0x1f, 0x0e, 0x4d, 0x0a,
						0x9a, 0x55, 0x3c, 0x1f, 0x5a, 0x2b, 0x7e, 0x01 };
	char pci[32];
	CUuuid uuid;
	CUdevice dev = -1;

	assert_cuda(cuDeviceGetUuid_v2(&uuid, 0));
	assert_memory_equal(&uuid, want, sizeof want);
	memset(&uuid, 0, sizeof uuid);
	assert_cuda(cuDeviceGetUuid(&uuid, 0));
	assert_memory_equal(&uuid, want, sizeof want);
	assert_cuda(cuDeviceGetPCIBusId(pci, sizeof pci, 1));
	assert_string_equal(pci, "0000:00:1E.0");
	static const char *const same[] = { "0000:00:1e.0", "0000:00:1e", "00:1e.0", "00000000:00:1E.0" };

	for (size_t i = 0; i < HM_COUNT(same); i++) {
		dev = -1;
		assert_cuda(cuDeviceGetByPCIBusId(&dev, same[i]));
		assert_int_equal(dev, 1);
	}
	assert_int_equal(cuDeviceGetByPCIBusId(&dev, "0000:00:1f.0"), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGetByPCIBusId(&dev, "card one"), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetByPCIBusId(&dev, "0000:00:1e.1"), CUDA_ERROR_INVALID_VALUE);
}

static void attributes(void **state HM_UNUSED)
{
	static const struct {
		CUdevice_attribute attribute;
		int want;
	} cases[] = {
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, SMS },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, THREADS_PER_SM },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, BLOCKS_PER_SM },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 5 },
		{ CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0 },
		{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0x1e },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1590000 },
		{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4096 << 10 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10 },
		{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0 },
	};
	int got, minor;
	size_t total = 0;

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		got = -1;
		assert_cuda(cuDeviceGetAttribute(&got, cases[i].attribute, 1));
		assert_int_equal(got, cases[i].want);
	}
	assert_int_equal(cuDeviceGetAttribute(&got, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetAttribute(&got, 100000, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetAttribute(&got, 16, 9), CUDA_ERROR_INVALID_DEVICE);
	assert_cuda(cuDeviceComputeCapability(&got, &minor, 0));
	assert_int_equal(got * 10 + minor, 75);
	assert_cuda(cuDeviceTotalMem_v2(&total, 0));
	assert_int_equal(total, CARD_BYTES - RESERVED_BYTES);
	assert_cuda(cuDriverGetVersion(&got));
	assert_int_equal(got, 13000);
}

static void error_texts(void **state HM_UNUSED)
{
	const char *text = NULL;

	assert_cuda(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
	assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
	assert_cuda(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	assert_string_equal(text, "out of memory");
	assert_int_equal(cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(count_and_names),
		cmocka_unit_test(identity),
		cmocka_unit_test(attributes),
		cmocka_unit_test(error_texts),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
