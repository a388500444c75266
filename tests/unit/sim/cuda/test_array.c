#include "core/macros.h"
#include "fixture.h"
#include "sim/cuda/array_layout.h"

#define KIB ((size_t)1 << 10)

/* Independent of the code: rows of 64 B, 8 rows together, pages of 64 KiB. */
static void layouts(void **state HM_UNUSED)
{
	static const struct {
		CUDA_ARRAY3D_DESCRIPTOR desc;
		unsigned levels;
		uint64_t bytes;
	} cases[] = {
		{ { 1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, 64 * KIB },
		{ { 16384, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, 1, 64 * KIB },
		{ { 16385, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, 1, 128 * KIB },
		{ { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0 }, 1, 16 * MIB },
		{ { 1024, 1024, 0, CU_AD_FORMAT_HALF, 2, 0 }, 1, 4 * MIB },
		{ { 1024, 1024, 0, CU_AD_FORMAT_SIGNED_INT16, 1, 0 }, 1, 2 * MIB },
		{ { 1024, 1024, 0, CU_AD_FORMAT_SIGNED_INT8, 1, 0 }, 1, 1 * MIB },
		{ { 1024, 1024, 0, 0xcb, 4, 0 }, 1, 8 * MIB },
		{ { 1024, 1024, 0, 0xc1, 2, 0 }, 1, 2 * MIB },
		{ { 1024, 1024, 0, 0x91, 1, 0 }, 1, 512 * KIB },                     /* BC1: 8 B for 16 elements */
		{ { 1024, 1024, 0, 0x9e, 4, 0 }, 1, 1024 * KIB },                    /* BC7: 16 B */
		{ { 65, 1025, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, 1, 192 * KIB }, /* 128 B x 1032 rows */
		{ { 64, 64, 64, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 }, 1, 1 * MIB },
		{ { 256, 256, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP }, 1, 1536 * KIB },
		{ { 16384, 0, 10, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED }, 1, 640 * KIB },
		/* 4 MiB + 1 MiB + 256 + 64 KiB and then 16, 4 + 2 x 2 rows of 64 B ... below a page more */
		{ { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, 11, 5 * MIB + 384 * KIB },
		{ { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, 2, 5 * MIB },
	};

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		print_message("case %zu\n", i);
		assert_true(array_desc_ok(&cases[i].desc));
		assert_int_equal(array_bytes(&cases[i].desc, cases[i].levels), cases[i].bytes);
	}
}

static void refused_descriptions(void **state HM_UNUSED)
{
	static const CUDA_ARRAY3D_DESCRIPTOR cases[] = {
		{ 0, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
		{ 4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0 },
		{ 4, 4, 0, CU_AD_FORMAT_FLOAT, 0, 0 },
		{ 4, 4, 0, 0, 1, 0 },
		{ 4, 4, 0, 0x9f, 1, 0 },
		{ 131073, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
		{ 4, 65537, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
		{ 4, 4, 16385, CU_AD_FORMAT_FLOAT, 1, 0 },
		{ 4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0 },
		{ 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0x200 },
		{ 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 1 },
		{ 4, 4, 5, CU_AD_FORMAT_FLOAT, 1, 4 },
		{ 4, 5, 6, CU_AD_FORMAT_FLOAT, 1, 4 },
		{ 4, 4, 12, CU_AD_FORMAT_FLOAT, 1, 4 },
		{ 4, 4, 2049, CU_AD_FORMAT_FLOAT, 1, 1 },
		{ 4, 4, 0, 0xc2, 1, 0 },
		{ 16385, 4, 4, CU_AD_FORMAT_FLOAT, 1, 0 },
		{ SIZE_MAX, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
	};
	CUarray array;

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		print_message("case %zu\n", i);
		assert_int_equal(cuArray3DCreate_v2(&array, &cases[i]), CUDA_ERROR_INVALID_VALUE);
	}
}

static void charged_and_given_back(void **state HM_UNUSED)
{
	CUDA_ARRAY_DESCRIPTOR plain = { 1024, 1024, CU_AD_FORMAT_FLOAT, 4 }, got;
	CUDA_ARRAY3D_DESCRIPTOR cube = { 128, 128, 128, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST }, got3;
	CUDA_ARRAY_DESCRIPTOR_v1 plain1 = { 1024, 1024, CU_AD_FORMAT_FLOAT, 4 }, got1;
	CUDA_ARRAY3D_DESCRIPTOR_v1 cube1 = { 128, 128, 128, CU_AD_FORMAT_FLOAT, 1, 0 }, got31;
	CUarray a, b, c, d;

	assert_cuda(cuArrayCreate_v2(&a, &plain));
	assert_int_equal(free_bytes(), ROOM_BYTES - 16 * MIB);
	assert_cuda(cuArray3DCreate_v2(&b, &cube));
	assert_int_equal(free_bytes(), ROOM_BYTES - 24 * MIB);
	assert_cuda(cuArrayCreate(&c, &plain1));
	assert_cuda(cuArray3DCreate(&d, &cube1));
	assert_int_equal(free_bytes(), ROOM_BYTES - 48 * MIB);
	assert_cuda(cuArrayGetDescriptor_v2(&got, a));
	assert_memory_equal(&got, &plain, sizeof got);
	assert_cuda(cuArray3DGetDescriptor_v2(&got3, b));
	assert_int_equal(got3.Depth, 128);
	assert_int_equal(got3.Flags, CUDA_ARRAY3D_SURFACE_LDST);
	assert_cuda(cuArrayGetDescriptor(&got1, c));
	assert_memory_equal(&got1, &plain1, sizeof got1);
	assert_cuda(cuArray3DGetDescriptor(&got31, d));
	assert_memory_equal(&got31, &cube1, sizeof got31);
	assert_cuda(cuArrayDestroy(a));
	assert_int_equal(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuArrayGetDescriptor_v2(&got, a), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(free_bytes(), ROOM_BYTES - 32 * MIB);
	assert_cuda(cuArrayDestroy(b));
	assert_cuda(cuArrayDestroy(c));
	assert_cuda(cuArrayDestroy(d));
	assert_int_equal(cuArrayCreate_v2(NULL, &plain), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuArrayCreate_v2(&a, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuArray3DCreate_v2(NULL, &cube), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuArray3DCreate_v2(&a, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* The driver says a size only where the program brings the memory; that such an array takes none is the point of it. */
static void requirements(void **state HM_UNUSED)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING };
	CUDA_ARRAY3D_DESCRIPTOR sparse = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE };
	CUDA_ARRAY3D_DESCRIPTOR plain = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
	CUDA_ARRAY_MEMORY_REQUIREMENTS need = { 0 };
	CUmipmappedArray m;
	CUarray a, b, c;

	assert_cuda(cuArray3DCreate_v2(&a, &desc));
	assert_cuda(cuArray3DCreate_v2(&b, &sparse));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuArrayGetMemoryRequirements(&need, a, 0));
	assert_int_equal(need.size, 16 * MIB);
	assert_int_equal(need.alignment, 64 * KIB);
	assert_int_equal(cuArrayGetMemoryRequirements(&need, a, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuArrayGetMemoryRequirements(&need, b, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuArray3DCreate_v2(&c, &plain));
	assert_int_equal(cuArrayGetMemoryRequirements(&need, c, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMipmappedArrayCreate(&m, &desc, 2));
	assert_cuda(cuMipmappedArrayGetMemoryRequirements(&need, m, 0));
	assert_int_equal(need.size, 20 * MIB);
	assert_cuda(cuMipmappedArrayDestroy(m));
	assert_cuda(cuArrayDestroy(a));
	assert_cuda(cuArrayDestroy(b));
	assert_cuda(cuArrayDestroy(c));
}

static void mipmaps(void **state HM_UNUSED)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, got;
	CUmipmappedArray m, one;
	CUarray level, again;

	assert_cuda(cuMipmappedArrayCreate(&m, &desc, 99)); /* cut to 11 */
	assert_int_equal(free_bytes(), ROOM_BYTES - 5 * MIB - 384 * KIB);
	assert_cuda(cuMipmappedArrayCreate(&one, &desc, 0));
	assert_int_equal(free_bytes(), ROOM_BYTES - 9 * MIB - 384 * KIB);
	assert_cuda(cuMipmappedArrayGetLevel(&level, m, 3));
	assert_cuda(cuMipmappedArrayGetLevel(&again, m, 3));
	assert_ptr_equal(level, again);
	assert_cuda(cuArray3DGetDescriptor_v2(&got, level));
	assert_int_equal(got.Width, 128);
	assert_cuda(cuMipmappedArrayGetLevel(&again, m, 10));
	assert_cuda(cuArray3DGetDescriptor_v2(&got, again));
	assert_int_equal(got.Height, 1);
	assert_int_equal(cuMipmappedArrayGetLevel(&again, m, 11), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMipmappedArrayGetLevel(&again, one, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE); /* the mipmap's */
	assert_cuda(cuMipmappedArrayDestroy(m));
	assert_int_equal(cuArray3DGetDescriptor_v2(&got, level), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB);
	assert_cuda(cuMipmappedArrayDestroy(one));
}

static void refused_when_full(void **state HM_UNUSED)
{
	CUDA_ARRAY_DESCRIPTOR desc = { 1024, 1024, CU_AD_FORMAT_FLOAT, 4 };
	CUDA_ARRAY3D_DESCRIPTOR huge = { 16384, 16384, 16, CU_AD_FORMAT_FLOAT, 4, 0 };
	CUmipmappedArray m;
	CUdeviceptr big;
	CUarray a;

	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - 14 * MIB));
	assert_int_equal(cuArrayCreate_v2(&a, &desc), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuArray3DCreate_v2(&a, &huge), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMipmappedArrayCreate(&m, &huge, 4), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(free_bytes(), 14 * MIB);
	assert_cuda(cuMemFree_v2(big));
}

/* By the end of their context, on whichever card another context is current. */
static void end_with_their_context(void **state HM_UNUSED)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
	CUcontext mine, other, primary;
	CUmipmappedArray m;
	CUarray a, b, level;

	assert_cuda(cuCtxGetCurrent(&primary));
	assert_cuda(cuCtxCreate_v2(&mine, 0, 0));
	assert_cuda(cuArray3DCreate_v2(&a, &desc));
	assert_cuda(cuArray3DCreate_v2(&b, &desc));
	assert_cuda(cuMipmappedArrayCreate(&m, &desc, 2));
	assert_cuda(cuMipmappedArrayGetLevel(&level, m, 1));
	assert_int_equal(free_bytes(), ROOM_BYTES - CONTEXT_BYTES - 52 * MIB);
	assert_cuda(cuCtxCreate_v2(&other, 0, 1));
	assert_cuda(cuArrayDestroy(b)); /* of another context, on another card */
	assert_cuda(cuCtxSetCurrent(mine));
	assert_int_equal(free_bytes(), ROOM_BYTES - CONTEXT_BYTES - 36 * MIB);
	assert_cuda(cuCtxDestroy_v2(mine));
	assert_cuda(cuCtxDestroy_v2(other));
	assert_cuda(cuCtxSetCurrent(primary));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_int_equal(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuArray3DGetDescriptor_v2(&desc, level), CUDA_ERROR_INVALID_HANDLE);
}

static CUmemGenericAllocationHandle tile_pool(size_t bytes)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				     .allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL };
	CUmemGenericAllocationHandle h = 0;

	assert_cuda(cuMemCreate(&h, bytes, &prop, 0));
	return h;
}

static CUarrayMapInfo box(CUarray array, unsigned x, unsigned y, unsigned width, unsigned height)
{
	return (CUarrayMapInfo) { .resource.array = array,
				  .subresource.sparseLevel = { .offsetX = x,
							       .offsetY = y,
							       .extentWidth = width,
							       .extentHeight = height,
							       .extentDepth = 1 },
				  .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
				  .deviceBitMask = 1 };
}

/* Of 4 bytes an element: tiles of 128 x 128, and 300 x 200 elements have 3 x 2 of them. */
static void tiles(void **state HM_UNUSED)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = { 300, 200, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE };
	CUmemGenericAllocationHandle one = tile_pool(2 * MIB), two = tile_pool(2 * MIB);
	CUDA_ARRAY_SPARSE_PROPERTIES p;
	CUarrayMapInfo m;
	CUarray a;

	assert_cuda(cuArray3DCreate_v2(&a, &desc));
	assert_cuda(cuArrayGetSparseProperties(&p, a));
	assert_int_equal(p.tileExtent.width, 128);
	assert_int_equal(p.tileExtent.height, 128);
	assert_int_equal(p.tileExtent.depth, 1);
	assert_int_equal(p.miptailFirstLevel, 1);
	m = box(a, 0, 0, 300, 200);
	m.memHandle.memHandle = one;
	m.offset = 2 * MIB - 5 * 64 * KIB;
	assert_int_equal(cuMemMapArrayAsync(&m, 1, NULL), CUDA_ERROR_INVALID_VALUE); /* six tiles do not fit */
	m.offset = 0;
	assert_cuda(cuMemMapArrayAsync(&m, 1, NULL));
	m = box(a, 128, 0, 128, 128);
	m.memHandle.memHandle = two;
	assert_cuda(cuMemMapArrayAsync_ptsz(&m, 1, NULL)); /* in the place of one */
	assert_cuda(cuMemRelease(one));
	assert_cuda(cuMemRelease(two));
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB);
	m = box(a, 0, 0, 256, 200);
	m.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	assert_cuda(cuMemMapArrayAsync(&m, 1, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - 2 * MIB);
	assert_cuda(cuArrayDestroy(a)); /* the last two tiles */
	assert_int_equal(free_bytes(), ROOM_BYTES);
}

static void mapped_whole(void **state HM_UNUSED)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING };
	CUmemGenericAllocationHandle small = tile_pool(2 * MIB), h = tile_pool(6 * MIB);
	CUDA_ARRAY_SPARSE_PROPERTIES p;
	CUmipmappedArray mipmap;
	CUarrayMapInfo m = { .resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
			     .subresourceType = 77,
			     .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
			     .memHandle.memHandle = small,
			     .deviceBitMask = 1 };

	assert_cuda(cuMipmappedArrayCreate(&mipmap, &desc, 2));
	m.resource.mipmap = mipmap;
	assert_int_equal(cuMipmappedArrayGetSparseProperties(&p, mipmap), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMapArrayAsync(&m, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	m.memHandle.memHandle = h;
	assert_cuda(cuMemMapArrayAsync(&m, 1, NULL));
	assert_cuda(cuMemRelease(h));
	assert_cuda(cuMemRelease(small));
	assert_int_equal(free_bytes(), ROOM_BYTES - 6 * MIB);
	m.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	assert_cuda(cuMemMapArrayAsync(&m, 1, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMipmappedArrayDestroy(mipmap));
}

/* 512 x 512 of 4 B: levels of 4 x 4, 2 x 2 and 1 tiles, then a tail of one, in each of two layers. */
static void levels_and_tails(void **state HM_UNUSED)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = { 512, 512,
					       2,   CU_AD_FORMAT_FLOAT,
					       1,   CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED };
	CUmemGenericAllocationHandle h = tile_pool(2 * MIB), tail = tile_pool(2 * MIB);
	CUDA_ARRAY_SPARSE_PROPERTIES p;
	CUmipmappedArray mipmap;
	CUarrayMapInfo m[2];

	assert_cuda(cuMipmappedArrayCreate(&mipmap, &desc, 10));
	assert_cuda(cuMipmappedArrayGetSparseProperties(&p, mipmap));
	assert_int_equal(p.miptailFirstLevel, 3);
	assert_int_equal(p.miptailSize, 64 * KIB);
	m[0] = box(NULL, 128, 128, 128, 128);
	m[0].resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	m[0].resource.mipmap = mipmap;
	m[0].subresource.sparseLevel.level = m[0].subresource.sparseLevel.layer = 1;
	m[0].memHandle.memHandle = h;
	m[1] = m[0];
	m[1].subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	m[1].subresource.miptail.layer = 1;
	m[1].subresource.miptail.offset = 0;
	m[1].subresource.miptail.size = 128 * KIB;
	m[1].memHandle.memHandle = tail;
	assert_int_equal(cuMemMapArrayAsync(m, 2, NULL), CUDA_ERROR_INVALID_VALUE); /* none of the two */
	m[1].subresource.miptail.size = 64 * KIB;
	assert_cuda(cuMemMapArrayAsync(m, 2, NULL));
	assert_cuda(cuMemRelease(h));
	assert_cuda(cuMemRelease(tail));
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB);
	m[0].memOperationType = m[1].memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	m[0].subresource.sparseLevel.layer = 0;
	assert_cuda(cuMemMapArrayAsync(m, 1, NULL)); /* another layer: nothing is there */
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB);
	m[0].subresource.sparseLevel.layer = 1;
	assert_cuda(cuMemMapArrayAsync(m, 2, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_cuda(cuMipmappedArrayDestroy(mipmap));
}

static void refused_maps(void **state HM_UNUSED)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = { 300, 200, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE };
	const CUDA_ARRAY3D_DESCRIPTOR plain = { 300, 200, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
	CUmemAllocationProp no_pool = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle h = tile_pool(2 * MIB), other;
	CUarrayMapInfo good, cases[10];
	CUarray a, full;

	assert_cuda(cuMemCreate(&other, 2 * MIB, &no_pool, 0));
	assert_cuda(cuArray3DCreate_v2(&a, &desc));
	assert_cuda(cuArray3DCreate_v2(&full, &plain));
	good = box(a, 0, 0, 128, 128);
	good.memHandle.memHandle = h;
	for (size_t i = 0; i < HM_COUNT(cases); i++)
		cases[i] = good;
	cases[0].resource.array = full;
	cases[1].memHandle.memHandle = other;
	cases[2].memHandle.memHandle = 1;
	cases[3].deviceBitMask = 2;
	cases[4].flags = 1;
	cases[5].memOperationType = 0;
	cases[6].subresource.sparseLevel.offsetX = 1;
	cases[7].subresource.sparseLevel.extentHeight = 127;
	cases[8].subresource.sparseLevel.level = 1;
	cases[9].offset = 1;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		print_message("case %zu\n", i);
		assert_int_equal(cuMemMapArrayAsync(&cases[i], 1, NULL), CUDA_ERROR_INVALID_VALUE);
	}
	assert_int_equal(cuMemMapArrayAsync(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemMapArrayAsync(&good, 1, NULL));
	assert_cuda(cuArrayDestroy(a));
	assert_cuda(cuArrayDestroy(full));
	assert_cuda(cuMemRelease(h));
	assert_cuda(cuMemRelease(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(layouts),      TEST(refused_descriptions), TEST(charged_and_given_back), TEST(requirements),
		TEST(mipmaps),      TEST(refused_when_full),    TEST(end_with_their_context), TEST(tiles),
		TEST(mapped_whole), TEST(levels_and_tails),     TEST(refused_maps),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
