#include <string.h>

#include "core/macros.h"
#include "fixture.h"

static const CUmemAllocationProp on_card_0 = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc read_write = {
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

/* The pattern of allocators that grow in place: create, map, release at once; the mapping keeps the memory. */
static void mapping_keeps_it(void **state HM_UNUSED)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;

	assert_cuda(cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemCreate(&handle, 20 * MIB, &on_card_0, 0));
	assert_int_equal(free_bytes(), ROOM_BYTES - 20 * MIB);
	assert_cuda(cuMemMap(va, 20 * MIB, 0, handle, 0));
	assert_cuda(cuMemRelease(handle));
	assert_int_equal(free_bytes(), ROOM_BYTES - 20 * MIB);
	assert_int_equal(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD8_v2(va, 1, 1), CUDA_ERROR_INVALID_VALUE); /* no access yet */
	assert_cuda(cuMemSetAccess(va, 20 * MIB, &read_write, 1));
	assert_cuda(cuMemsetD8_v2(va, 1, 20 * MIB));
	assert_int_equal(cuMemAddressFree(va, 64 * MIB), CUDA_ERROR_INVALID_VALUE); /* still mapped */
	assert_cuda(cuMemUnmap(va, 20 * MIB));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemAddressFree(va, 64 * MIB));
	assert_int_equal(cuMemAddressFree(va, 64 * MIB), CUDA_ERROR_INVALID_VALUE);
}

/* Two mappings of one memory, and a reference taken from an address. */
static void shared_memory(void **state HM_UNUSED)
{
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr va;
	CUmemAllocationProp prop;
	unsigned char got[4] = { 0 };
	unsigned long long access = 9;

	assert_cuda(cuMemAddressReserve(&va, 16 * MIB, 0, 0, 0));
	assert_cuda(cuMemCreate(&handle, 4 * MIB, &on_card_0, 0));
	assert_cuda(cuMemMap(va, 4 * MIB, 0, handle, 0));
	assert_cuda(cuMemMap(va + 8 * MIB, 2 * MIB, 2 * MIB, handle, 0)); /* its second half once more */
	assert_int_equal(cuMemMap(va + 2 * MIB, 2 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE); /* taken */
	assert_int_equal(cuMemMap(va + 12 * MIB, 4 * MIB, 2 * MIB, handle, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemSetAccess(va, 4 * MIB, &read_write, 1));
	assert_cuda(cuMemSetAccess(va + 8 * MIB, 2 * MIB, &read_write, 1));
	assert_cuda(cuMemsetD8_v2(va + 2 * MIB, 0x5a, 4));
	assert_cuda(cuMemcpyDtoH_v2(got, va + 8 * MIB, 4));
	assert_int_equal(got[3], 0x5a);
	assert_cuda(cuMemGetAccess(&access, &on_card_0.location, va));
	assert_int_equal(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_cuda(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 9 * MIB)));
	assert_int_equal(again, handle);
	assert_cuda(cuMemGetAllocationPropertiesFromHandle(&prop, again));
	assert_memory_equal(&prop, &on_card_0, sizeof prop);
	assert_cuda(cuMemUnmap(va, 4 * MIB));
	assert_cuda(cuMemUnmap(va + 8 * MIB, 2 * MIB));
	assert_cuda(cuMemRelease(handle));
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB); /* one reference left */
	assert_cuda(cuMemRelease(again));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemAddressFree(va, 16 * MIB));
}

/* A copy goes on from one mapping into its neighbour; an unmap takes several whole ones, and only whole ones. */
static void across_mappings(void **state HM_UNUSED)
{
	CUmemGenericAllocationHandle one, two;
	CUdeviceptr va;
	unsigned got = 0;

	assert_cuda(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
	assert_cuda(cuMemCreate(&one, 4 * MIB, &on_card_0, 0));
	assert_cuda(cuMemCreate(&two, 4 * MIB, &on_card_0, 0));
	assert_cuda(cuMemMap(va, 4 * MIB, 0, one, 0));
	assert_cuda(cuMemMap(va + 4 * MIB, 4 * MIB, 0, two, 0));
	assert_cuda(cuMemSetAccess(va, 8 * MIB, &read_write, 1));
	assert_cuda(cuMemsetD32_v2(va, 0x01020304, 2 * MIB));
	assert_cuda(cuMemcpyDtoH_v2(&got, va + 4 * MIB - 2, 4));
	assert_int_equal(got, 0x03040102);
	assert_int_equal(cuMemUnmap(va, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemUnmap(va + 2 * MIB, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemUnmap(va, 8 * MIB));
	assert_cuda(cuMemRelease(one));
	assert_cuda(cuMemRelease(two));
	assert_cuda(cuMemAddressFree(va, 8 * MIB));
}

static void arguments(void **state HM_UNUSED)
{
	CUmemAllocationProp bad_device = on_card_0, host = on_card_0;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va, hinted;
	size_t granularity = 0;

	assert_cuda(cuMemGetAllocationGranularity(&granularity, &on_card_0, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	assert_int_equal(granularity, PAGE);
	bad_device.location.id = 9;
	host.location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(cuMemCreate(&handle, 3 * MIB, &on_card_0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemCreate(&handle, 0, &on_card_0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemCreate(&handle, PAGE, &bad_device, 0), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemCreate(&handle, PAGE, &host, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemCreate(&handle, ROOM_BYTES + PAGE, &on_card_0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemCreate(&handle, 100 * CARD_BYTES, &on_card_0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemCreate(&handle, ROOM_BYTES, &on_card_0, 0)); /* all of it, exactly */
	assert_int_equal(free_bytes(), 0);
	assert_cuda(cuMemRelease(handle));
	assert_int_equal(cuMemAddressReserve(&va, MIB, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAddressReserve(&va, PAGE, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAddressReserve(&va, (size_t)1 << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemAddressReserve(&va, PAGE, 64 * MIB, 0, 0));
	assert_int_equal(va % (64 * MIB), 0);
	assert_cuda(cuMemAddressReserve(&hinted, PAGE, 0, va + 128 * MIB, 0));
	assert_int_equal(hinted, va + 128 * MIB);
	assert_cuda(cuMemAddressFree(hinted, PAGE));
	assert_int_equal(cuMemMap(va, PAGE, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemRelease(0x1234), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAddressFree(va, PAGE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(mapping_keeps_it),
		TEST(shared_memory),
		TEST(across_mappings),
		TEST(arguments),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
