#include <unistd.h>

#include "core/macros.h"
#include "fixture.h"

static const CUmulticastObjectProp pair = { .numDevices = 2, .size = 8 * MIB };

static CUmemGenericAllocationHandle memory_on(int device, size_t bytes)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUmemGenericAllocationHandle h = 0;

	assert_cuda(cuMemCreate(&h, bytes, &prop, 0));
	return h;
}

static CUmemGenericAllocationHandle object(void)
{
	CUmemGenericAllocationHandle mc = 0;

	assert_cuda(cuMulticastCreate(&mc, &pair));
	assert_cuda(cuMulticastAddDevice(mc, 0));
	assert_cuda(cuMulticastAddDevice(mc, 1));
	return mc;
}

static void supported(void **state HM_UNUSED)
{
	CUmulticastObjectProp bad = pair;
	size_t granularity = 0;
	int yes = 0;

	assert_cuda(cuDeviceGetAttribute(&yes, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1));
	assert_int_equal(yes, 1);
	assert_cuda(cuMulticastGetGranularity(&granularity, &pair, CU_MULTICAST_GRANULARITY_MINIMUM));
	assert_int_equal(granularity, PAGE);
	assert_int_equal(cuMulticastGetGranularity(&granularity, &pair, 2), CUDA_ERROR_INVALID_VALUE);
	bad.numDevices = 3;
	assert_int_equal(cuMulticastGetGranularity(&granularity, &bad, 0), CUDA_ERROR_INVALID_VALUE);
}

/* The object takes nothing; what is bound stays although its handle is released. */
static void binds_keep_memory(void **state HM_UNUSED)
{
	CUmemGenericAllocationHandle mc = object(), mine = memory_on(0, 8 * MIB);

	assert_int_equal(free_bytes(), ROOM_BYTES - 8 * MIB);
	assert_cuda(cuMulticastBindMem(mc, 0, mine, 0, 8 * MIB, 0));
	assert_cuda(cuMemRelease(mine));
	assert_int_equal(free_bytes(), ROOM_BYTES - 8 * MIB);
	assert_int_equal(cuMulticastUnbind(mc, 0, 0, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMulticastUnbind(mc, 1, 0, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMulticastUnbind(mc, 0, 0, 8 * MIB));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	mine = memory_on(0, 4 * MIB);
	assert_cuda(cuMulticastBindMem(mc, 4 * MIB, mine, 0, 4 * MIB, 0));
	assert_cuda(cuMemRelease(mine));
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB);
	assert_cuda(cuMemRelease(mc)); /* takes along what is bound */
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_int_equal(cuMulticastUnbind(mc, 0, 4 * MIB, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
}

static void bound_by_address(void **state HM_UNUSED)
{
	CUmemGenericAllocationHandle mc = object(), mine = memory_on(0, 8 * MIB);
	CUdeviceptr at, plain;

	assert_cuda(cuMemAddressReserve(&at, 8 * MIB, 0, 0, 0));
	assert_int_equal(cuMulticastBindAddr(mc, 0, at, 4 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemMap(at, 8 * MIB, 0, mine, 0));
	assert_cuda(cuMemRelease(mine));
	assert_int_equal(cuMulticastBindAddr(mc, 0, at + 6 * MIB, 4 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMulticastBindAddr(mc, 0, at + 4 * MIB, 4 * MIB, 0));
	assert_cuda(cuMemAlloc_v2(&plain, 2 * MIB));
	assert_int_equal(cuMulticastBindAddr(mc, 4 * MIB, plain, 2 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(plain));
	assert_cuda(cuMemUnmap(at, 8 * MIB));
	assert_int_equal(free_bytes(), ROOM_BYTES - 8 * MIB);
	assert_cuda(cuMulticastUnbind(mc, 0, 0, 4 * MIB));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemMap(at, 8 * MIB, 0, mc, 0)); /* the object is mapped as memory is, and takes none */
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemUnmap(at, 8 * MIB));
	assert_cuda(cuMemAddressFree(at, 8 * MIB));
	assert_cuda(cuMemRelease(mc));
}

static void refused(void **state HM_UNUSED)
{
	CUmulticastObjectProp bad = pair;
	CUmemGenericAllocationHandle mc, mine = memory_on(0, 8 * MIB), other = memory_on(1, 8 * MIB);

	bad.size = MIB;
	assert_int_equal(cuMulticastCreate(&mc, &bad), CUDA_ERROR_INVALID_VALUE);
	bad = pair;
	bad.flags = 1;
	assert_int_equal(cuMulticastCreate(&mc, &bad), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMulticastAddDevice(mine, 0), CUDA_ERROR_INVALID_VALUE); /* memory, not an object */
	assert_cuda(cuMulticastCreate(&mc, &pair));
	assert_cuda(cuMulticastAddDevice(mc, 0));
	assert_int_equal(cuMulticastAddDevice(mc, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMulticastAddDevice(mc, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMulticastBindMem(mc, 0, mine, 0, 8 * MIB, 0), CUDA_ERROR_INVALID_VALUE); /* one is missing */
	assert_cuda(cuMulticastAddDevice(mc, 1));
	assert_int_equal(cuMulticastBindMem(mc, 0, mc, 0, 8 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMulticastBindMem(mc, MIB, mine, 0, 2 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMulticastBindMem(mc, 2 * MIB, mine, 0, 8 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMulticastBindMem(mc, 0, mine, 2 * MIB, 8 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMulticastBindMem(mc, 2 * MIB, mine, 0, 4 * MIB, 0));
	assert_int_equal(cuMulticastBindMem(mc, 4 * MIB, mine, 0, 4 * MIB, 0), CUDA_ERROR_INVALID_VALUE); /* overlap */
	assert_cuda(cuMulticastBindMem(mc, 2 * MIB, other, 0, 4 * MIB, 0)); /* the other device's place */
	assert_cuda(cuMulticastBindMem(mc, 6 * MIB, mine, 6 * MIB, 2 * MIB, 0));
	assert_cuda(cuMemRelease(mine));
	assert_cuda(cuMemRelease(other));
	assert_cuda(cuMemRelease(mc));
}

/* Of two cards one is added: memory of the other has no place. */
static void wrong_device(void **state HM_UNUSED)
{
	CUmulticastObjectProp one = { .numDevices = 1, .size = 2 * MIB };
	CUmemGenericAllocationHandle mc, other = memory_on(1, 2 * MIB);

	assert_cuda(cuMulticastCreate(&mc, &one));
	assert_cuda(cuMulticastAddDevice(mc, 0));
	assert_int_equal(cuMulticastAddDevice(mc, 1), CUDA_ERROR_INVALID_VALUE); /* it is full */
	assert_int_equal(cuMulticastBindMem(mc, 0, other, 0, 2 * MIB, 0), CUDA_ERROR_INVALID_DEVICE);
	assert_cuda(cuMemRelease(other));
	assert_cuda(cuMemRelease(mc));
}

/* The devices that one process adds count for all; what is bound stays when the object goes. */
static void shared(void **state HM_UNUSED)
{
	CUmulticastObjectProp prop = pair;
	CUmemAllocationProp memory = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				       .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle mc, theirs, mine = memory_on(0, 2 * MIB), good;
	int fd = -1;

	assert_cuda(cuMulticastCreate(&mc, &prop));
	assert_int_equal(cuMemExportToShareableHandle(&fd, mc, 1, 0), CUDA_ERROR_INVALID_VALUE); /* not asked for */
	assert_cuda(cuMemRelease(mc));
	prop.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	assert_cuda(cuMulticastCreate(&mc, &prop));
	assert_cuda(cuMulticastAddDevice(mc, 0));
	assert_cuda(cuMemExportToShareableHandle(&fd, mc, 1, 0));
	assert_cuda(cuMemImportFromShareableHandle(&theirs, (void *)(intptr_t)fd, 1)); // NOLINT
	close(fd);
	assert_int_equal(cuMulticastAddDevice(theirs, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMulticastAddDevice(theirs, 1));
	assert_int_equal(cuMulticastBindMem(mc, 0, mine, 0, 2 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemCreate(&good, 2 * MIB, &memory, 0));
	assert_cuda(cuMulticastBindMem(mc, 0, good, 0, 2 * MIB, 0));
	assert_cuda(cuMulticastUnbind(mc, 0, 0, 2 * MIB));
	assert_cuda(cuMulticastBindMem(theirs, 0, good, 0, 2 * MIB, 0));
	assert_cuda(cuMemRelease(good));
	assert_cuda(cuMemRelease(mc));
	assert_cuda(cuMulticastUnbind(theirs, 0, 0, 2 * MIB));
	assert_int_equal(free_bytes(), ROOM_BYTES - 2 * MIB); /* `mine` */
	assert_cuda(cuMemRelease(mine));
	assert_cuda(cuMemRelease(theirs));
	assert_int_equal(free_bytes(), ROOM_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(supported), TEST(binds_keep_memory), TEST(bound_by_address),
		TEST(refused),   TEST(wrong_device),      TEST(shared),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
