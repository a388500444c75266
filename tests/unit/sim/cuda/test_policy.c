/* Managed memory's place, limits of a context, code, cooperative launches and peers. */
#include <string.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"

static CUmemLocation at(int type, int id)
{
	return (CUmemLocation) { type, id };
}

static int range(CUdeviceptr p, int attribute)
{
	int value = -9;

	assert_cuda(cuMemRangeGetAttribute(&value, sizeof value, attribute, p, 1));
	return value;
}

static size_t free_on(CUcontext ctx)
{
	CUcontext before;
	size_t left, total;

	assert_cuda(cuCtxGetCurrent(&before));
	assert_cuda(cuCtxSetCurrent(ctx));
	assert_cuda(cuMemGetInfo_v2(&left, &total));
	assert_cuda(cuCtxSetCurrent(before));
	return left;
}

/* On a card from a prefetch or touch on, off it by a prefetch to the host, by each form of the call. */
static void residency(void **state HM_UNUSED)
{
	CUcontext other, mine;
	CUdeviceptr p, big;

	assert_cuda(cuCtxGetCurrent(&mine));
	assert_cuda(cuCtxCreate_v2(&other, 0, 1));
	assert_cuda(cuCtxSetCurrent(mine));
	assert_cuda(cuMemAllocManaged(&p, 10 * MIB, CU_MEM_ATTACH_GLOBAL));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemPrefetchAsync(p, 10 * MIB, 0, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	assert_cuda(cuMemPrefetchAsync_v2(p, 10 * MIB, at(CU_MEM_LOCATION_TYPE_DEVICE, 1), 0, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES); /* moved */
	assert_int_equal(free_on(other), ROOM_BYTES - 10 * MIB);
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), 1);
	assert_cuda(cuMemPrefetchAsync_v2_ptsz(p, 10 * MIB, at(CU_MEM_LOCATION_TYPE_HOST, 0), 0, NULL));
	assert_int_equal(free_on(other), ROOM_BYTES);
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_CPU);
	assert_cuda(cuMemPrefetchAsync_ptsz(p, 10 * MIB, 0, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	assert_cuda(cuMemPrefetchAsync(p, 10 * MIB, CU_DEVICE_CPU, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemPrefetchAsync_v2(p, 10 * MIB, at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0), 0, NULL));
	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - 8 * MIB)); /* no room: it stays with the host */
	assert_cuda(cuMemPrefetchAsync(p, 10 * MIB, 0, NULL));
	assert_int_equal(free_bytes(), 8 * MIB);
	assert_cuda(cuMemFree_v2(big));
	assert_int_equal(cuMemPrefetchAsync(p, 10 * MIB, 2, NULL), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemPrefetchAsync(p, 10 * MIB, -2, NULL), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemPrefetchAsync_v2(p, 10 * MIB, at(9, 0), 0, NULL), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemPrefetchAsync_v2(p, 10 * MIB, at(CU_MEM_LOCATION_TYPE_DEVICE, 2), 0, NULL),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemPrefetchAsync_v2(p, 10 * MIB, at(CU_MEM_LOCATION_TYPE_DEVICE, 0), 1, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemPrefetchAsync(p, 10 * MIB + 1, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(p));
	assert_cuda(cuCtxDestroy_v2(other));
}

static void advice(void **state HM_UNUSED)
{
	CUdeviceptr p, plain;
	int by[3];

	assert_cuda(cuMemAllocManaged(&p, 10 * MIB, CU_MEM_ATTACH_GLOBAL));
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), -2);
	assert_cuda(cuMemAdvise(p, MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
	assert_cuda(cuMemsetD8_v2(p, 1, 10 * MIB)); /* used where it is */
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemAdvise_v2(p, MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at(CU_MEM_LOCATION_TYPE_DEVICE, 1)));
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 1);
	assert_cuda(cuMemAdvise(p, MIB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0));
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), -2);
	assert_cuda(cuMemsetD8_v2(p, 1, 1));
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	assert_cuda(cuMemAdvise(p, MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
	assert_cuda(cuMemAdvise(p, MIB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
	assert_int_equal(range(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
	assert_cuda(cuMemAdvise(p, MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
	assert_cuda(cuMemAdvise(p, MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
	assert_cuda(cuMemRangeGetAttribute(by, sizeof by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 1));
	assert_int_equal(by[0], CU_DEVICE_CPU);
	assert_int_equal(by[1], 1);
	assert_int_equal(by[2], -2);
	assert_cuda(cuMemAdvise_v2(p, MIB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, at(CU_MEM_LOCATION_TYPE_DEVICE, 1)));
	assert_cuda(cuMemRangeGetAttribute(by, sizeof by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 1));
	assert_int_equal(by[1], -2);
	assert_int_equal(cuMemAdvise(p, MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemAdvise(p, MIB, 7, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAdvise(p, MIB, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemRangeGetAttribute(by, 3, 1, p, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemRangeGetAttribute(by, 4, 9, p, 1), CUDA_ERROR_NOT_SUPPORTED);
	assert_cuda(cuMemAlloc_v2(&plain, MIB));
	assert_int_equal(cuMemAdvise(plain, MIB, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(plain));
	assert_cuda(cuMemFree_v2(p));
}

/* 40 SMs of 1024 threads. */
static void limits(void **state HM_UNUSED)
{
	CUcontext ctx, before;
	size_t value = 0;

	assert_cuda(cuCtxGetCurrent(&before));
	assert_cuda(cuCtxCreate_v2(&ctx, 0, 0));
	size_t start = free_bytes();

	assert_cuda(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	assert_int_equal(value, 8 * MIB);
	assert_cuda(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * MIB + 1));
	assert_int_equal(free_bytes(), start - 58 * MIB);
	assert_cuda(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 * MIB));
	assert_int_equal(free_bytes(), start - 24 * MIB);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, start + 64 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	assert_int_equal(value, 32 * MIB); /* as it was */
	assert_cuda(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1));
	assert_int_equal(free_bytes(), start);
	assert_cuda(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 5 * MIB));
	assert_int_equal(free_bytes(), start - 4 * MIB);
	assert_cuda(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)); /* 1 KiB more for each of 40960 threads */
	assert_int_equal(free_bytes(), start - 44 * MIB);
	assert_cuda(cuCtxSetLimit(5, 64 * MIB)); /* no memory */
	assert_int_equal(free_bytes(), start - 44 * MIB);
	assert_cuda(cuCtxDestroy_v2(ctx));
	assert_cuda(cuCtxSetCurrent(before));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
	assert_int_equal(value, MIB); /* each context has its own */
}

#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
static const char with_variables[] = HEAD ".visible .global .align 4 .b8 table[5242880];\n.global .u32 counter;\n"
					  ".visible .entry busy_ns(.param .u64 p) { ret; }\n";

static void variables(void **state HM_UNUSED)
{
	CUmodule m;
	CUdeviceptr table, counter, big;
	size_t bytes = 0;
	unsigned char got = 9;

	assert_cuda(cuModuleLoadData(&m, with_variables));
	assert_int_equal(free_bytes(), ROOM_BYTES - 6 * MIB);
	assert_cuda(cuModuleGetGlobal_v2(&table, &bytes, m, "table"));
	assert_int_equal(bytes, 5 * MIB);
	assert_cuda(cuModuleGetGlobal_v2(&counter, &bytes, m, "counter"));
	assert_int_equal(counter - table, 5 * MIB);
	assert_int_equal(bytes, 4);
	assert_cuda(cuMemsetD8_v2(table, 3, 5 * MIB));
	assert_cuda(cuMemcpyDtoH_v2(&got, counter, 1));
	assert_int_equal(got, 0);
	assert_int_equal(cuMemFree_v2(table), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuModuleGetGlobal_v2(&table, NULL, m, "busy_ns"), CUDA_ERROR_NOT_FOUND);
	assert_cuda(cuModuleUnload(m));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_int_equal(cuMemsetD8_v2(table, 3, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - 4 * MIB));
	assert_int_equal(cuModuleLoadData(&m, with_variables), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(free_bytes(), 4 * MIB);
	assert_cuda(cuMemFree_v2(big));
}

/* The first 2 MiB of code are the context's; as long as the text is. */
static void code(void **state HM_UNUSED)
{
	static char text[2 * MIB];
	CUmodule a, b;
	CUdeviceptr big;

	memset(text, ' ', sizeof text - 1);
	memcpy(text, kernels_ptx, strlen(kernels_ptx));
	assert_cuda(cuModuleLoadData(&a, text)); /* a byte less than 2 MiB */
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuModuleLoadData(&b, kernels_ptx));
	assert_int_equal(free_bytes(), ROOM_BYTES - PAGE);
	assert_cuda(cuModuleUnload(a));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES));
	assert_int_equal(cuModuleLoadData(&a, text), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFree_v2(big));
	assert_cuda(cuModuleUnload(b));
}

/* In each context from its first use there. */
static void libraries(void **state HM_UNUSED)
{
	CUcontext mine, other;
	CUlibrary library;
	CUkernel kernel;
	CUmodule module;
	CUdeviceptr p, q;
	uint64_t ns = 1;
	void *params[] = { &ns };

	assert_cuda(cuCtxGetCurrent(&mine));
	assert_cuda(cuLibraryLoadData(&library, with_variables, NULL, NULL, 0, NULL, NULL, 0));
	assert_cuda(cuLibraryGetKernel(&kernel, library, "busy_ns"));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	for (int i = 0; i < 2; i++) {
		assert_cuda(cuLaunchKernel((CUfunction)(void *)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		assert_int_equal(free_bytes(), ROOM_BYTES - 6 * MIB);
	}
	assert_cuda(cuLibraryGetModule(&module, library));
	assert_cuda(cuModuleGetGlobal_v2(&p, NULL, module, "table"));
	assert_cuda(cuCtxCreate_v2(&other, 0, 1));
	assert_cuda(cuModuleGetGlobal_v2(&q, NULL, module, "table"));
	assert_int_not_equal(p, q);
	assert_int_equal(free_on(other), ROOM_BYTES - 6 * MIB);
	assert_cuda(cuCtxDestroy_v2(other));
	assert_cuda(cuCtxSetCurrent(mine));
	assert_int_equal(free_bytes(), ROOM_BYTES - 6 * MIB);
	assert_cuda(cuLibraryUnload(library));
	assert_int_equal(free_bytes(), ROOM_BYTES);
}

static void cooperative(void **state HM_UNUSED)
{
	CUcontext mine, other;
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUfunction f;
	CUstream s[2];
	uint64_t ns = 1000;
	void *params[] = { &ns };

	assert_cuda(cuCtxGetCurrent(&mine));
	assert_cuda(cuModuleLoadData(&module, kernels_ptx));
	assert_cuda(cuModuleGetFunction(&f, module, "busy_ns"));
	/* 40 SMs hold 80 blocks of 512 threads at once. */
	assert_cuda(cuLaunchCooperativeKernel(f, 80, 1, 1, 512, 1, 1, 0, NULL, params));
	assert_int_equal(cuLaunchCooperativeKernel(f, 81, 1, 1, 512, 1, 1, 0, NULL, params),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(cuLaunchCooperativeKernel_ptsz(f, 81, 1, 1, 512, 1, 1, 0, NULL, params),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_cuda(cuLaunchKernel(f, 81, 1, 1, 512, 1, 1, 0, NULL, params, NULL));
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuStreamCreate(&s[0], 0));
	assert_cuda(cuCtxCreate_v2(&other, 0, 1));
	assert_cuda(cuStreamCreate(&s[1], 0));
	assert_cuda(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	assert_cuda(cuLibraryGetKernel(&kernel, library, "busy_ns"));
	CUDA_LAUNCH_PARAMS l[2] = { { (CUfunction)(void *)kernel, 1, 1, 1, 32, 1, 1, 0, s[0], params },
				    { (CUfunction)(void *)kernel, 81, 1, 1, 512, 1, 1, 0, s[1], params } };

	assert_int_equal(cuLaunchCooperativeKernelMultiDevice(l, 2, 0), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_cuda(cuStreamQuery(s[0])); /* none of it ran */
	l[1].gridDimX = 80;
	assert_cuda(cuLaunchCooperativeKernelMultiDevice(l, 2, 0));
	assert_int_equal(cuStreamQuery(s[0]), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(s[1]), CUDA_ERROR_NOT_READY);
	l[1].hStream = NULL;
	assert_int_equal(cuLaunchCooperativeKernelMultiDevice(l, 2, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchCooperativeKernelMultiDevice(l, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuLibraryUnload(library));
	assert_cuda(cuCtxDestroy_v2(other));
	assert_cuda(cuCtxSetCurrent(mine));
	assert_cuda(cuStreamDestroy_v2(s[0]));
	assert_cuda(cuModuleUnload(module));
}

static void peers(void **state HM_UNUSED)
{
	CUcontext mine, other, near;
	int can = -1;

	assert_cuda(cuCtxGetCurrent(&mine));
	assert_cuda(cuCtxCreate_v2(&other, 0, 1));
	assert_cuda(cuCtxCreate_v2(&near, 0, 0));
	assert_cuda(cuCtxSetCurrent(mine));
	size_t before = free_bytes();

	assert_cuda(cuDeviceCanAccessPeer(&can, 0, 1)); /* below one host bridge */
	assert_int_equal(can, 1);
	assert_cuda(cuDeviceCanAccessPeer(&can, 1, 1));
	assert_int_equal(can, 0);
	assert_int_equal(cuDeviceCanAccessPeer(&can, 0, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	assert_cuda(cuCtxEnablePeerAccess(other, 0));
	assert_int_equal(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	assert_int_equal(cuCtxEnablePeerAccess(other, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxEnablePeerAccess(near, 0), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(free_bytes(), before);
	assert_cuda(cuCtxDisablePeerAccess(other));
	assert_cuda(cuCtxDestroy_v2(other));
	assert_cuda(cuCtxDestroy_v2(near));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(residency), TEST(advice),    TEST(limits),      TEST(variables),
		TEST(code),      TEST(libraries), TEST(cooperative), TEST(peers),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
