/* Memory mapped into sparse arrays: charged as long as a tile keeps it. */
#include "fill.h"
#include "paths.h"
#include "views.h"
#include "vmm.h"

static CUresult (*map_array)(CUarrayMapInfo *list, unsigned count, CUstream stream);

static CUarray sparse_array(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { 128, 128, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE };
	CUarray array;

	SUPPORTED(cuArray3DCreate_v2(&array, &d));
	return array;
}

/* handle 0: what is mapped there is unmapped. */
static void map_all(CUarray array, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo m = { .resourceType = CU_RESOURCE_TYPE_ARRAY,
			     .resource.array = array,
			     .subresource.sparseLevel = { .extentWidth = 128, .extentHeight = 128, .extentDepth = 1 },
			     .memOperationType = handle != 0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
			     .memHandle.memHandle = handle,
			     .deviceBitMask = 1 };

	OK(map_array(&m, 1, NULL));
	OK(cuCtxSynchronize());
}

static void run_map(void)
{
	size_t bytes = fill_piece();
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				     .allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL };
	CUmemGenericAllocationHandle handle;

	vmm_need();
	CUarray array = sparse_array();
	size_t start = views_match_books(0);

	SUPPORTED(cuMemCreate(&handle, bytes, &prop, 0));
	map_all(array, handle);
	OK(cuMemRelease(handle));
	HOLDS(views_match_books(0) == start + bytes, "released while a tile has it: %zu are charged",
	      views_used(0) - start);
	fill_expect_room(0);
	map_all(array, 0);
	HOLDS(views_match_books(0) == start, "unmapped: %zu are charged", views_used(0) - start);
	OK(cuArrayDestroy(array));
	fill_expect_room(0);
}

static void run_plain(void)
{
	NEED(cuMemMapArrayAsync);
	map_array = cuMemMapArrayAsync;
	run_map();
}

static void run_per_thread(void)
{
	NEED(cuMemMapArrayAsync_ptsz);
	map_array = cuMemMapArrayAsync_ptsz;
	run_map();
}

const struct path paths_array_map[] = {
	{ "array-sparse", run_plain, BARE_BREAKS },
	{ "array-sparse-per-thread", run_per_thread, BARE_BREAKS },
	{ 0 },
};
