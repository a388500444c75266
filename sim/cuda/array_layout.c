#include "sim/cuda/array_layout.h"

#include "core/macros.h"

/* Bounds of cards since Pascal, of one- and two-dimensional arrays, three-dimensional ones and layers. */
enum { MAX_WIDTH = 131072, MAX_HEIGHT = 65536, MAX_3D = 16384, MAX_LAYERS = 2048 };
enum { ROW_BYTES = 64, ROWS = 8 };
enum { ALL_FLAGS = 0xff };

/* Bytes of a channel, or of a block of 4 x 4 elements where `blocks`. */
struct format {
	int first, last;
	unsigned bytes;
	unsigned channels; /* 0: the description's; else fixed */
	bool blocks;
};
static const struct format formats[] = {
	{ CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT8, 1 },
	{ CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16, 2 },
	{ CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32, 4 },
	{ CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8, 1 },
	{ CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, 2 },
	{ CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, 4 },
	{ CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF, 2 },
	{ CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT, 4 },
	{ 0x91, 0x92, 8, 1, true },  /* BC1 */
	{ 0x93, 0x96, 16, 1, true }, /* BC2, BC3 */
	{ 0x97, 0x98, 8, 1, true },  /* BC4 */
	{ 0x99, 0x9e, 16, 1, true }, /* BC5, BC6H, BC7 */
	{ 0xc0, 0xc0, 1, 1 },        /* UNORM_INT8X1, X2, X4, then 16 bits; SNORM the same */
	{ 0xc1, 0xc1, 1, 2 },
	{ 0xc2, 0xc2, 1, 4 },
	{ 0xc3, 0xc3, 2, 1 },
	{ 0xc4, 0xc4, 2, 2 },
	{ 0xc5, 0xc5, 2, 4 },
	{ 0xc6, 0xc6, 1, 1 },
	{ 0xc7, 0xc7, 1, 2 },
	{ 0xc8, 0xc8, 1, 4 },
	{ 0xc9, 0xc9, 2, 1 },
	{ 0xca, 0xca, 2, 2 },
	{ 0xcb, 0xcb, 2, 4 },
};

static const struct format *format_of(int value)
{
	for (size_t i = 0; i < HM_COUNT(formats); i++)
		if (value >= formats[i].first && value <= formats[i].last)
			return &formats[i];
	return NULL;
}

static bool layered(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

static bool sizes_ok(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (d->Width == 0 || d->Width > MAX_WIDTH || d->Height > MAX_HEIGHT)
		return false;
	if ((d->Flags & CUDA_ARRAY3D_CUBEMAP) != 0)
		return d->Width == d->Height && d->Depth > 0 && d->Depth % 6 == 0 && d->Depth <= MAX_LAYERS &&
		       (d->Depth == 6 || (d->Flags & CUDA_ARRAY3D_LAYERED) != 0);
	if ((d->Flags & CUDA_ARRAY3D_LAYERED) != 0)
		return d->Depth > 0 && d->Depth <= MAX_LAYERS;
	return d->Depth == 0 || (d->Height > 0 && d->Width <= MAX_3D && d->Height <= MAX_3D && d->Depth <= MAX_3D);
}

bool array_desc_ok(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const struct format *f = format_of(d->Format);
	unsigned n = d->NumChannels;

	if (f == NULL || (n != 1 && n != 2 && n != 4) || (d->Flags & ~(unsigned)ALL_FLAGS) != 0)
		return false;
	if (!f->blocks && f->channels != 0 && f->channels != n)
		return false;
	return sizes_ok(d);
}

unsigned array_levels_max(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t most = HM_MAX(d->Width, d->Height);
	unsigned levels = 1;

	if (!layered(d))
		most = HM_MAX(most, d->Depth);
	for (; most > 1; most /= 2)
		levels++;
	return levels;
}

static size_t shrink(size_t size, unsigned level)
{
	return size == 0 ? 0 : HM_MAX(size >> level, (size_t)1);
}

CUDA_ARRAY3D_DESCRIPTOR array_level(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR out = *d;

	out.Width = shrink(d->Width, level);
	out.Height = shrink(d->Height, level);
	if (!layered(d))
		out.Depth = shrink(d->Depth, level);
	return out;
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* At most 2^17 elements of 16 bytes in 2^16 rows and 2^14 slices: far from an overflow. */
static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const struct format *f = format_of(d->Format);
	uint64_t width = d->Width, height = HM_MAX(d->Height, (size_t)1), element = f->bytes;

	if (f->blocks) {
		width = (width + 3) / 4;
		height = (height + 3) / 4;
	} else {
		element *= d->NumChannels;
	}
	if (height > 1)
		height = round_up(height, ROWS);
	return round_up(width * element, ROW_BYTES) * height * HM_MAX(d->Depth, (size_t)1);
}

uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < levels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR level = array_level(d, i);

		sum += level_bytes(&level);
	}
	return round_up(sum, ARRAY_PAGE_BYTES);
}

/* The tiles of all cards with sparse resources ("standard" tiles), by the bytes of an element: 1, 2, 4, 8, 16. */
static const struct {
	unsigned flat[2], solid[3];
} tiles[] = {
	{ { 256, 256 }, { 64, 32, 32 } }, { { 256, 128 }, { 32, 32, 32 } }, { { 128, 128 }, { 32, 32, 16 } },
	{ { 128, 64 }, { 32, 16, 16 } },  { { 64, 64 }, { 16, 16, 16 } },
};

bool array_tiling(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels, struct array_tiling *out)
{
	const struct format *f = format_of(d->Format);
	bool solid = d->Depth > 0 && !layered(d);
	uint64_t tail = 0;
	unsigned size = f->blocks ? 0 : f->bytes * d->NumChannels, i = 0;

	if (size == 0 || d->Height == 0)
		return false;
	while (1U << i < size)
		i++;
	*out = (struct array_tiling) { .width = solid ? tiles[i].solid[0] : tiles[i].flat[0],
				       .height = solid ? tiles[i].solid[1] : tiles[i].flat[1],
				       .depth = solid ? tiles[i].solid[2] : 1,
				       .levels = levels,
				       .layers = layered(d) ? (unsigned)d->Depth : 1 };
	for (; out->tail_level < levels; out->tail_level++) {
		CUDA_ARRAY3D_DESCRIPTOR l = array_level(d, out->tail_level);

		if (l.Width < out->width || l.Height < out->height || (solid && l.Depth < out->depth))
			break;
	}
	for (unsigned level = out->tail_level; level < levels; level++) {
		CUDA_ARRAY3D_DESCRIPTOR l = array_level(d, level);

		if (layered(d))
			l.Depth = 0;
		tail += level_bytes(&l);
	}
	out->tail_bytes = round_up(tail, ARRAY_PAGE_BYTES);
	return true;
}
