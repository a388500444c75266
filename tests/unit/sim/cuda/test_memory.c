#include <stdlib.h>
#include <string.h>

#include "abi/cuda_v1.h"
#include "core/macros.h"
#include "fixture.h"

static void sizes(void **state HM_UNUSED)
{
	static const struct {
		size_t bytes, charged;
	} cases[] = {
		{ 1, PAGE },
		{ 512, PAGE },
		{ MIB - 1, PAGE },
		{ MIB, PAGE },
		{ PAGE, PAGE },
		{ PAGE + 1, 2 * PAGE },
		{ 100 * MIB, 100 * MIB },
		{ 101 * MIB, 102 * MIB },
		{ ROOM_BYTES, ROOM_BYTES },
	};

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		CUdeviceptr ptr = 0;

		assert_cuda(cuMemAlloc_v2(&ptr, cases[i].bytes));
		assert_int_equal(ptr % 512, 0);
		assert_int_equal(free_bytes(), ROOM_BYTES - cases[i].charged);
		assert_cuda(cuMemFree_v2(ptr));
		assert_int_equal(free_bytes(), ROOM_BYTES);
	}
}

static void refusals(void **state HM_UNUSED)
{
	CUdeviceptr ptr = 0;

	assert_int_equal(cuMemAlloc_v2(&ptr, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc_v2(&ptr, ROOM_BYTES + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&ptr, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&ptr, SIZE_MAX / 2 + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemFree_v2(12345), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(0));
	assert_cuda(cuMemAlloc_v2(&ptr, 4096));
	assert_int_equal(cuMemFree_v2(ptr + 512), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(ptr));
	assert_int_equal(cuMemFree_v2(ptr), CUDA_ERROR_INVALID_VALUE);
}

/* To the page: what fits is granted, one page more is refused, and a small one takes a page of its own. */
static void exact_boundary(void **state HM_UNUSED)
{
	CUdeviceptr big, page, small[3];

	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - PAGE));
	assert_int_equal(cuMemAlloc_v2(&page, PAGE + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemAlloc_v2(&page, PAGE));
	assert_int_equal(free_bytes(), 0);
	assert_int_equal(cuMemAlloc_v2(&small[0], 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFree_v2(page));
	for (size_t i = 0; i < HM_COUNT(small); i++)
		assert_cuda(cuMemAlloc_v2(&small[i], 600 * 1024)); /* three in one page */
	assert_int_equal(cuMemAlloc_v2(&page, 600 * 1024), CUDA_ERROR_OUT_OF_MEMORY);
	for (size_t i = 0; i < HM_COUNT(small); i++)
		assert_cuda(cuMemFree_v2(small[i]));
	assert_cuda(cuMemFree_v2(big));
}

static void many_small(void **state HM_UNUSED)
{
	enum { COUNT = 20000 };
	static CUdeviceptr ptrs[COUNT];

	for (unsigned i = 0; i < COUNT; i++) {
		unsigned got = 0;

		assert_cuda(cuMemAlloc_v2(&ptrs[i], 4));
		assert_cuda(cuMemcpyHtoD_v2(ptrs[i], &i, sizeof i));
		assert_cuda(cuMemcpyDtoH_v2(&got, ptrs[i], sizeof got));
		assert_int_equal(got, i);
	}
	assert_int_equal(free_bytes(), ROOM_BYTES - 5 * PAGE); /* 4096 of 512 B in each */
	for (unsigned i = 0; i < COUNT; i++) {
		unsigned got = 0, k = (i * 7919U) % COUNT; /* in another order */

		assert_cuda(cuMemcpyDtoH_v2(&got, ptrs[k], sizeof got));
		assert_int_equal(got, k);
		assert_cuda(cuMemFree_v2(ptrs[k]));
	}
}

static void pitch(void **state HM_UNUSED)
{
	CUdeviceptr ptr, base;
	size_t row = 0, size = 0;

	assert_cuda(cuMemAllocPitch_v2(&ptr, &row, 1000, 3000, 4));
	assert_int_equal(row, 1024);
	assert_cuda(cuMemGetAddressRange_v2(&base, &size, ptr + 5));
	assert_int_equal(base, ptr);
	assert_int_equal(size, 1024 * 3000);
	assert_cuda(cuMemFree_v2(ptr));
	assert_int_equal(cuMemAllocPitch_v2(&ptr, &row, 1000, 3000, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocPitch_v2(&ptr, &row, 0, 3000, 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocPitch_v2(&ptr, &row, SIZE_MAX, 2, 4), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocPitch_v2(&ptr, &row, SIZE_MAX / 2, 4, 4), CUDA_ERROR_OUT_OF_MEMORY);
}

/* More than the card: legal; on the card once the card has touched it, as far as it fits. */
static void managed(void **state HM_UNUSED)
{
	CUdeviceptr ptr, huge;
	char *host;

	assert_cuda(cuMemAllocManaged(&huge, 2 * CARD_BYTES, CU_MEM_ATTACH_GLOBAL));
	assert_cuda(cuMemAllocManaged(&ptr, 10 * MIB, CU_MEM_ATTACH_GLOBAL));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	host = (char *)(uintptr_t)ptr;
	host[0] = 1; /* the host uses the same addresses */
	assert_cuda(cuMemsetD8_v2(ptr + 1, 7, 10));
	assert_int_equal(host[0], 1);
	assert_int_equal(host[10], 7);
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	assert_cuda(cuMemPrefetchAsync(huge, 2 * CARD_BYTES, 0, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	assert_cuda(cuMemAdvise(ptr, MIB, 1, 0));
	assert_int_equal(cuMemAdvise(1234, MIB, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocManaged(&ptr, MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(huge));
	assert_cuda(cuMemFree_v2((uintptr_t)host));
}

static void pinned_host(void **state HM_UNUSED)
{
	static char own[8192];
	unsigned flags = 0;
	CUdeviceptr dev = 0, ptr;
	void *p;

	assert_cuda(cuMemHostAlloc(&p, 10000, CU_MEMHOSTALLOC_DEVICEMAP));
	assert_int_equal(free_bytes(), ROOM_BYTES); /* no device memory */
	assert_cuda(cuMemHostGetDevicePointer_v2(&dev, p, 0));
	assert_cuda(cuMemHostGetFlags(&flags, p));
	assert_int_equal(flags, CU_MEMHOSTALLOC_DEVICEMAP);
	assert_cuda(cuMemsetD8_v2(dev, 5, 10000));
	assert_int_equal(((char *)p)[9999], 5);
	assert_int_equal(cuMemsetD8_v2(dev + 1, 5, 12288), CUDA_ERROR_INVALID_VALUE); /* its pages end before */
	assert_cuda(cuMemFreeHost(p));
	assert_int_equal(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAllocHost_v2(&p, 1));
	assert_cuda(cuMemFreeHost(p));
	assert_cuda(cuMemHostRegister_v2(own, sizeof own, 0));
	assert_int_equal(cuMemHostRegister_v2(own + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAlloc_v2(&ptr, 100));
	assert_int_equal(cuMemsetD8_v2((uintptr_t)own + sizeof own, 1, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(ptr));
	assert_cuda(cuMemHostUnregister(own));
	assert_int_equal(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static void pointers(void **state HM_UNUSED)
{
	CUpointer_attribute wanted[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					 CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	unsigned type = 0;
	int ordinal = 5, local;
	unsigned char is_managed = 9;
	size_t size = 0;
	void *out[] = { &type, &ordinal, &is_managed, &size };
	CUdeviceptr ptr, start = 0;
	CUcontext ctx, now;

	assert_cuda(cuMemAlloc_v2(&ptr, 3 * MIB));
	assert_cuda(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr + 7));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	assert_cuda(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ptr + 7));
	assert_int_equal(start, ptr);
	assert_cuda(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, ptr));
	assert_cuda(cuCtxGetCurrent(&now));
	assert_ptr_equal(ctx, now);
	assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr + 3 * MIB),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&local),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuPointerGetAttributes(4, wanted, out, ptr));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ordinal, 0);
	assert_int_equal(is_managed, 0);
	assert_int_equal(size, 3 * MIB);
	assert_cuda(cuPointerGetAttributes(4, wanted, out, (uintptr_t)&local)); /* unlike the single form */
	assert_int_equal(type, 0);
	assert_int_equal(ordinal, -2);
	assert_cuda(cuMemFree_v2(ptr));
}

static void copies(void **state HM_UNUSED)
{
	enum { N = 5 << 20 };
	unsigned char *in = malloc(N), *out = calloc(1, N);
	CUdeviceptr a, b;

	assert_non_null(in);
	assert_non_null(out);
	for (size_t i = 0; i < N; i++)
		in[i] = (unsigned char)(i * 31 >> 3);
	assert_cuda(cuMemAlloc_v2(&a, N));
	assert_cuda(cuMemAlloc_v2(&b, N));
	assert_cuda(cuMemcpyHtoDAsync_v2(a, in, N, NULL));
	assert_cuda(cuMemcpyDtoD_v2_ptds(b, a, N));
	assert_cuda(cuMemcpyDtoHAsync_v2_ptsz(out, b, N, NULL));
	assert_cuda(cuStreamSynchronize_ptsz(NULL));
	assert_memory_equal(in, out, N);
	assert_cuda(cuMemcpyDtoD_v2(a + 1, a, N - 1)); /* overlapping */
	assert_cuda(cuMemcpy((uintptr_t)out, a, N));   /* which side is which is told by the address */
	assert_int_equal(out[0], in[0]);
	assert_memory_equal(in, out + 1, N - 1);
	assert_int_equal(cuMemcpyHtoD_v2(a, in, N + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH_v2(out, a + N, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD_v2((uintptr_t)out, in, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemcpyHtoD_v2(a, in, 0));
	assert_cuda(cuMemFree_v2(a));
	assert_int_equal(cuMemcpyHtoD_v2(a, in, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(b));
	free(in);
	free(out);
}

static void fills(void **state HM_UNUSED)
{
	enum { N = 3 << 20 };
	unsigned char *out = malloc(N);
	CUdeviceptr p;

	assert_non_null(out);
	assert_cuda(cuMemAlloc_v2(&p, N));
	assert_cuda(cuMemsetD8_v2(p, 0xab, N));
	assert_cuda(cuMemsetD16_v2(p + 2, 0x1234, 2));
	assert_cuda(cuMemsetD32Async(p + 8, 0xdeadbeef, 1, NULL));
	assert_cuda(cuMemcpyDtoH_v2(out, p, N));
	static const unsigned char head[] = { 0xab, 0xab, 0x34, 0x12, 0x34, 0x12, 0xab,
					      0xab, 0xef, 0xbe, 0xad, 0xde, 0xab };

	assert_memory_equal(out, head, sizeof head);
	assert_int_equal(out[N - 1], 0xab);
	assert_cuda(cuMemsetD8_v2(p + 1, 0, N - 2)); /* zeros take the short way: whole pages, and the two ends */
	assert_cuda(cuMemcpyDtoH_v2(out, p, N));
	assert_int_equal(out[0], 0xab);
	assert_int_equal(out[N - 1], 0xab);
	for (size_t i = 1; i < N - 1; i++)
		assert_int_equal(out[i], 0);
	assert_int_equal(cuMemsetD8_v2(p, 0, N + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD32_v2(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE); /* not aligned */
	assert_int_equal(cuMemsetD32_v2(p, 0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(p));
	free(out);
}

/* The CUDA 2 calls say the same in 32 bits. */
static void old_interface(void **state HM_UNUSED)
{
	unsigned left = 0, total = 0, size = 0;

	assert_cuda(cuMemGetInfo(&left, &total));
	assert_int_equal(left, ROOM_BYTES);
	assert_int_equal(total, CARD_BYTES - RESERVED_BYTES);
	assert_cuda(cuMemGetInfo(NULL, NULL));
	assert_cuda(cuDeviceTotalMem(&size, 0));
	assert_int_equal(size, CARD_BYTES - RESERVED_BYTES);
	assert_int_equal(cuDeviceTotalMem(&size, 2), CUDA_ERROR_INVALID_DEVICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(sizes),  TEST(refusals), TEST(exact_boundary), TEST(many_small),
		TEST(pitch),  TEST(managed),  TEST(pinned_host),    TEST(pointers),
		TEST(copies), TEST(fills),    TEST(old_interface),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
