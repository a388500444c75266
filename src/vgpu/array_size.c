#include "vgpu/array_size.h"

#include <stdbool.h>

#include "core/macros.h"

/* Cards lay arrays out in tiles of 8 rows of 64 bytes, and hand them out in pages of 64 KiB. */
enum { ROW_BYTES = 64, ROWS = 8, PAGE_BYTES = 64 << 10, LEVELS_MAX = 32 };
enum { LARGEST_ELEMENT = 16 }; /* four channels of 32 bits; also the largest block of compressed formats */

static unsigned element_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	switch (d->Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return HM_MIN(d->NumChannels, 4U);
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2 * HM_MIN(d->NumChannels, 4U);
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4 * HM_MIN(d->NumChannels, 4U);
	default: return LARGEST_ELEMENT;
	}
}

static bool round_up(uint64_t *n, uint64_t unit)
{
	if (__builtin_add_overflow(*n, unit - 1, n))
		return false;
	*n = *n / unit * unit;
	return true;
}

static uint64_t shrunk(uint64_t size, unsigned level)
{
	return HM_MAX(size >> level, (uint64_t)1);
}

/* False: more than 64 bits. */
static bool add_level(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level, uint64_t *sum)
{
	bool layered = (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
	uint64_t row, rows = shrunk(d->Height, level), slices = layered ? d->Depth : shrunk(d->Depth, level);

	if (__builtin_mul_overflow(shrunk(d->Width, level), (uint64_t)element_bytes(d), &row) ||
	    !round_up(&row, ROW_BYTES) || (rows > 1 && !round_up(&rows, ROWS)))
		return false;
	return !__builtin_mul_overflow(row, rows, &row) && !__builtin_mul_overflow(row, slices, &row) &&
	       !__builtin_add_overflow(*sum, row, sum);
}

uint64_t array_size(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	uint64_t largest = HM_MAX(desc->Width, desc->Height), sum = 0;

	largest = HM_MAX(largest, (uint64_t)desc->Depth);
	for (unsigned i = 0; i < HM_MIN(levels, (unsigned)LEVELS_MAX) && (i == 0 || largest >> i != 0); i++) {
		if (!add_level(desc, i, &sum))
			return UINT64_MAX;
	}
	return round_up(&sum, PAGE_BYTES) ? sum : UINT64_MAX;
}
