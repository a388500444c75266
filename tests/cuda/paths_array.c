/* Arrays and mipmapped arrays: the driver pads them as it likes, so what they take is the driver's books' to say. */
#include "fill.h"
#include "paths.h"
#include "views.h"

/* Rows of 8 KiB; as many as make up the bytes. */
enum { ROW_ELEMENTS = 2048, ELEMENT_BYTES = 4 };
#define ROW ((size_t)ROW_ELEMENTS * ELEMENT_BYTES)
#define FORMAT CU_AD_FORMAT_FLOAT

static CUDA_ARRAY3D_DESCRIPTOR flat(size_t bytes)
{
	return (CUDA_ARRAY3D_DESCRIPTOR) {
		.Width = ROW_ELEMENTS, .Height = bytes / ROW, .Format = FORMAT, .NumChannels = 1
	};
}

static CUDA_ARRAY3D_DESCRIPTOR cube(size_t bytes)
{
	return (CUDA_ARRAY3D_DESCRIPTOR) {
		.Width = ROW_ELEMENTS, .Height = 32, .Depth = bytes / ROW / 32, .Format = FORMAT, .NumChannels = 1
	};
}

static CUresult take_2d(uint64_t *out, size_t bytes)
{
	CUDA_ARRAY_DESCRIPTOR d = { .Width = ROW_ELEMENTS, .Height = bytes / ROW, .Format = FORMAT, .NumChannels = 1 };

	return cuArrayCreate_v2((CUarray *)out, &d);
}
static CUresult take_2d_cuda2(uint64_t *out, size_t bytes)
{
	CUDA_ARRAY_DESCRIPTOR_v1 d = {
		.Width = ROW_ELEMENTS, .Height = (unsigned)(bytes / ROW), .Format = FORMAT, .NumChannels = 1
	};

	return cuArrayCreate((CUarray *)out, &d);
}
static CUresult take_3d(uint64_t *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d = cube(bytes);

	return cuArray3DCreate_v2((CUarray *)out, &d);
}
static CUresult take_3d_cuda2(uint64_t *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR_v1 d = { .Width = ROW_ELEMENTS,
					 .Height = 32,
					 .Depth = (unsigned)(bytes / ROW / 32),
					 .Format = FORMAT,
					 .NumChannels = 1 };

	return cuArray3DCreate((CUarray *)out, &d);
}
/* Layers of one row of 128 KiB; padding may multiply that by the rows of a tile. */
static CUresult take_1d(uint64_t *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { .Width = 32768,
				      .Depth = bytes / 131072,
				      .Format = FORMAT,
				      .NumChannels = 1,
				      .Flags = CUDA_ARRAY3D_LAYERED };

	d.Depth = HM_MIN(d.Depth, (size_t)2048);
	return cuArray3DCreate_v2((CUarray *)out, &d);
}
static CUresult take_mipmap(uint64_t *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d = flat(bytes);

	return cuMipmappedArrayCreate((CUmipmappedArray *)out, &d, 4);
}
static CUresult give_array(uint64_t what)
{
	return cuArrayDestroy((CUarray)(uintptr_t)what);
}
static CUresult give_mipmap(uint64_t what)
{
	return cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)what);
}

#define FILL(function, how, back)                                                                                      \
	static void function(void)                                                                                     \
	{                                                                                                              \
		fill_and_empty(&(struct way) { .take = (how), .give = (back), .step = 4 * MIB, .rest = 32 * MIB });    \
	}
FILL(run_2d, take_2d, give_array)
FILL(run_2d_cuda2, take_2d_cuda2, give_array)
FILL(run_3d, take_3d, give_array)
FILL(run_3d_cuda2, take_3d_cuda2, give_array)
FILL(run_1d, take_1d, give_array)
FILL(run_mipmap, take_mipmap, give_mipmap)

/* Sparse and deferred ones have no memory: none may be charged, or programs would be refused what is there. */
static void run_no_memory(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = flat(check_limit());
	unsigned flags[] = { CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING };
	size_t rows = d.Height;

	check_use(0);
	size_t start = views_match_books(0);

	for (size_t i = 0; i < HM_COUNT(flags); i++) {
		CUarray array;

		d.Flags = flags[i];
		d.Height = HM_MIN(rows, (size_t)32768);
		CUresult rc = cuArray3DCreate_v2(&array, &d);

		if (rc == CUDA_ERROR_NOT_SUPPORTED)
			continue;
		OK(rc);
		HOLDS(check_same(views_match_books(0), start), "an array without memory is charged %zu",
		      views_used(0) - start);
		OK(cuArrayDestroy(array));
	}
}

const struct path paths_array[] = {
	{ "array-1d-layers", run_1d, BARE_BREAKS },
	{ "array-2d", run_2d, BARE_BREAKS },
	{ "array-2d-cuda2", run_2d_cuda2, BARE_BREAKS },
	{ "array-3d", run_3d, BARE_BREAKS },
	{ "array-3d-cuda2", run_3d_cuda2, BARE_BREAKS },
	{ "array-mipmapped", run_mipmap, BARE_BREAKS },
	{ "array-without-memory", run_no_memory, BARE_PASSES },
	{ 0 },
};
