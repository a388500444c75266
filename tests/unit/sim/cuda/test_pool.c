#include <string.h>

#include "core/macros.h"
#include "fixture.h"

#define CHUNK (32 * MIB)

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t value = 99;

	assert_cuda(cuMemPoolGetAttribute(pool, which, &value));
	return value;
}

static void set_threshold(CUmemoryPool pool, cuuint64_t bytes)
{
	assert_cuda(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static CUmemoryPool new_pool(size_t max_bytes)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				 .maxSize = max_bytes };
	CUmemoryPool pool = NULL;

	assert_cuda(cuMemPoolCreate(&pool, &props));
	return pool;
}

/* Reserved memory stays until a synchronisation, then goes down to the threshold, which is 0. */
static void reserved_and_used(void **state HM_UNUSED)
{
	CUmemoryPool pool;
	CUdeviceptr a, b;

	assert_cuda(cuDeviceGetDefaultMemPool(&pool, 0));
	assert_cuda(cuMemAllocAsync(&a, MIB, NULL));
	assert_cuda(cuMemAllocAsync_ptsz(&b, 1000, NULL));
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), CHUNK);
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), MIB + 1024);
	assert_int_equal(free_bytes(), ROOM_BYTES - CHUNK);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemFree_v2(b)); /* by either call */
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), MIB + 1024);
	assert_int_equal(free_bytes(), ROOM_BYTES - CHUNK);
	assert_cuda(cuStreamSynchronize(NULL));
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), CHUNK);
	assert_int_equal(free_bytes(), ROOM_BYTES);
}

static void threshold_and_trim(void **state HM_UNUSED)
{
	CUmemoryPool pool = new_pool(0);
	CUdeviceptr a, b;

	set_threshold(pool, UINT64_MAX);
	assert_cuda(cuMemAllocFromPoolAsync(&a, 100 * MIB, pool, NULL)); /* a chunk of its own */
	assert_cuda(cuMemAllocFromPoolAsync(&b, 10, pool, NULL));
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(free_bytes(), ROOM_BYTES - 100 * MIB - CHUNK);
	assert_cuda(cuMemAllocFromPoolAsync(&a, 60 * MIB, pool, NULL)); /* in the same chunk */
	assert_int_equal(free_bytes(), ROOM_BYTES - 100 * MIB - CHUNK);
	assert_cuda(cuMemPoolTrimTo(pool, 0)); /* all in use */
	assert_int_equal(free_bytes(), ROOM_BYTES - 100 * MIB - CHUNK);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemPoolTrimTo(pool, 0));
	assert_int_equal(free_bytes(), ROOM_BYTES - CHUNK);
	assert_cuda(cuMemPoolDestroy(pool)); /* lives on for b */
	assert_int_equal(free_bytes(), ROOM_BYTES - CHUNK);
	assert_int_equal(cuMemAllocFromPoolAsync(&a, 10, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFreeAsync(b, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
}

static void full_card(void **state HM_UNUSED)
{
	CUmemoryPool pool = new_pool(0);
	CUdeviceptr big, a, b;

	set_threshold(pool, UINT64_MAX);
	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - 40 * MIB));
	assert_cuda(cuMemAllocFromPoolAsync(&a, 30 * MIB, pool, NULL));
	assert_cuda(cuMemAllocFromPoolAsync(&b, 7 * MIB, pool, NULL)); /* no room for a whole step: its pages alone */
	assert_int_equal(free_bytes(), 0);
	assert_int_equal(cuMemAllocFromPoolAsync(&b, 3 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemAllocFromPoolAsync(&a, 31 * MIB, pool, NULL)); /* in what the pool holds */
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemFreeAsync(b, NULL));
	assert_cuda(cuMemAllocFromPoolAsync(&a, 38 * MIB, pool, NULL)); /* what lies idle gives way */
	assert_int_equal(cuMemAllocFromPoolAsync(&b, SIZE_MAX, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemPoolDestroy(pool));
	assert_cuda(cuMemFree_v2(big));
}

static void limits_of_a_pool(void **state HM_UNUSED)
{
	CUmemoryPool pool = new_pool(10 * MIB), got, standard;
	CUmemPoolProps managed = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED };
	CUdeviceptr a, b;
	cuuint64_t value = 5;

	assert_cuda(cuMemAllocFromPoolAsync(&a, 10 * MIB, pool, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	assert_int_equal(cuMemAllocFromPoolAsync(&b, 1, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuDeviceSetMemPool(0, pool));
	assert_cuda(cuDeviceGetMemPool(&got, 0));
	assert_ptr_equal(got, pool);
	assert_cuda(cuMemAllocAsync(&a, 5 * MIB, NULL));
	assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5 * MIB);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemPoolDestroy(pool));
	assert_cuda(cuDeviceGetMemPool(&got, 0));
	assert_cuda(cuDeviceGetDefaultMemPool(&standard, 0));
	assert_ptr_equal(got, standard);
	assert_int_equal(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemPoolCreate(&pool, &managed), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemPoolGetAttribute(standard, 77, &value), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocFromPoolAsync(&a, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocAsync(&a, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* The calls of 13.0, by place and kind of memory. */
static void by_place(void **state HM_UNUSED)
{
	CUmemLocation device = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, host = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	CUmemLocation none = { CU_MEM_LOCATION_TYPE_DEVICE, 2 };
	CUmemoryPool pool = new_pool(0), got, standard;

	assert_cuda(cuDeviceGetDefaultMemPool(&standard, 0));
	assert_cuda(cuMemGetDefaultMemPool(&got, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
	assert_ptr_equal(got, standard);
	assert_cuda(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
	assert_cuda(cuMemGetMemPool(&got, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
	assert_ptr_equal(got, pool);
	assert_cuda(cuMemGetDefaultMemPool(&got, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
	assert_ptr_equal(got, standard);
	assert_int_equal(cuMemGetMemPool(&got, &device, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, pool), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemGetMemPool(&got, &host, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemGetMemPool(&got, &none, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemGetMemPool(&got, &device, 7), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemSetMemPool(NULL, CU_MEM_ALLOCATION_TYPE_PINNED, pool), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemPoolDestroy(pool));
}

static void of_the_host(void **state HM_UNUSED)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 } };
	CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	CUmemoryPool pool, standard;
	CUdeviceptr a, b;

	assert_cuda(cuMemPoolCreate(&pool, &props));
	assert_cuda(cuMemGetDefaultMemPool(&standard, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
	assert_cuda(cuMemAllocFromPoolAsync(&a, CHUNK, pool, NULL));
	assert_cuda(cuMemAllocFromPoolAsync(&b, CHUNK, standard, NULL));
	assert_int_equal(attribute(standard, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), CHUNK);
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemFree_v2(b));
	assert_cuda(cuMemPoolDestroy(pool));
}

/* Every kind of pointer by every free; a pointer is freed once. */
static void any_free(void **state HM_UNUSED)
{
	for (int kind = 0; kind < 4; kind++)
		for (int async = 0; async < 2; async++) {
			CUdeviceptr p = 0;
			size_t row;

			assert_cuda(kind == 0   ? cuMemAlloc_v2(&p, 3 * MIB)
				    : kind == 1 ? cuMemAllocAsync(&p, 3 * MIB, NULL)
				    : kind == 2 ? cuMemAllocManaged(&p, 3 * MIB, CU_MEM_ATTACH_GLOBAL)
						: cuMemAllocPitch_v2(&p, &row, 600, 600, 4));
			assert_cuda(async ? cuMemFreeAsync(p, NULL) : cuMemFree_v2(p));
			assert_int_equal(async ? cuMemFreeAsync(p, NULL) : cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
			assert_cuda(cuCtxSynchronize());
			assert_int_equal(free_bytes(), ROOM_BYTES);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(reserved_and_used), TEST(threshold_and_trim), TEST(full_card),   TEST(limits_of_a_pool),
		TEST(any_free),          TEST(by_place),           TEST(of_the_host),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
