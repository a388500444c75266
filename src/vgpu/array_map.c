/* Memory mapped into sparse arrays and those of deferred mapping: a tile keeps its handle's memory until it is unmapped
 * or mapped anew, or its array ends. Arrays of deferred mapping are mapped whole: they have one tile. The driver unmaps
 * in stream order, and the charge goes when that is queued. */
#include "vgpu/handle.h"
#include "vgpu/hooks.h"

enum { TILE_BYTES = 64 << 10 };

/* What an operation names, counted in tiles. */
struct box {
	uint64_t array;       /* its record */
	unsigned part, layer; /* part: a level; UINT32_MAX: the mip tail */
	unsigned low[3], high[3];
};

static uint64_t mix(uint64_t x, uint64_t with)
{
	x = (x ^ with) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ (x >> 32);
}

/* As a record has one key. That two tiles share one of 2^64 is no worry. */
static uint64_t tile_key(const struct box *b, unsigned x, unsigned y, unsigned z)
{
	uint64_t key = mix(b->array, (uint64_t)b->part << 32 | b->layer);

	return mix(mix(key, (uint64_t)x << 32 | y), z);
}

static void along(struct box *b, unsigned axis, uint64_t offset, uint64_t extent, unsigned tile)
{
	b->low[axis] = (unsigned)(offset / HM_MAX(tile, 1U));
	b->high[axis] = (unsigned)((offset + extent + tile - 1) / HM_MAX(tile, 1U));
}

/* The driver has accepted the operation: its bounds are those of an array. */
static struct box box_of(const CUarrayMapInfo *m, const struct record *array)
{
	bool mipmapped = m->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	struct box b = { .array = (uintptr_t)array, .high = { 1, 1, 1 } };
	CUDA_ARRAY_SPARSE_PROPERTIES p;
	CUresult rc = mipmapped ? REAL(cuMipmappedArrayGetSparseProperties)(&p, m->resource.mipmap)
				: REAL(cuArrayGetSparseProperties)(&p, m->resource.array);

	if (rc != CUDA_SUCCESS)
		return b; /* of deferred mapping */
	if (m->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		b.part = UINT32_MAX;
		b.layer = m->subresource.miptail.layer;
		along(&b, 0, m->subresource.miptail.offset, m->subresource.miptail.size, TILE_BYTES);
		return b;
	}
	b.part = m->subresource.sparseLevel.level;
	b.layer = m->subresource.sparseLevel.layer;
	along(&b, 0, m->subresource.sparseLevel.offsetX, m->subresource.sparseLevel.extentWidth, p.tileExtent.width);
	along(&b, 1, m->subresource.sparseLevel.offsetY, m->subresource.sparseLevel.extentHeight, p.tileExtent.height);
	along(&b, 2, m->subresource.sparseLevel.offsetZ, m->subresource.sparseLevel.extentDepth, p.tileExtent.depth);
	return b;
}

/* memory NULL: unmapped, or another's. Without memory for a record the handle is kept for good. */
static void set_tile(struct vgpu *v, uint64_t array, uint64_t key, struct record *memory)
{
	struct record *tile = memory != NULL ? track_new(&v->track) : NULL;

	handle_keeper_ended(v, track_take(&v->track, TRACK_TILE, key));
	if (memory == NULL)
		return;
	track_count(&v->track, memory, 0, 1);
	if (tile == NULL)
		return;
	tile->kind = TRACK_TILE;
	tile->key = key;
	tile->owner = (uintptr_t)memory;
	tile->bytes = array;
	track_put(&v->track, tile);
}

static struct record *array_of(struct vgpu *v, const CUarrayMapInfo *m)
{
	bool mipmapped = m->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	uint64_t handle = mipmapped ? (uintptr_t)m->resource.mipmap : (uintptr_t)m->resource.array;
	struct record *r = track_hold(&v->track, TRACK_ARRAY, handle);

	if (r != NULL)
		track_release(&v->track, TRACK_ARRAY, handle);
	return r;
}

static void set_tiles(struct vgpu *v, const CUarrayMapInfo *m, struct record *memory)
{
	const struct record *array = array_of(v, m);
	struct box b;

	if (array == NULL)
		return;
	b = box_of(m, array);
	for (unsigned z = b.low[2]; z < b.high[2]; z++) {
		for (unsigned y = b.low[1]; y < b.high[1]; y++) {
			for (unsigned x = b.low[0]; x < b.high[0]; x++)
				set_tile(v, b.array, tile_key(&b, x, y, z), memory);
		}
	}
}

static struct record *keep(struct vgpu *v, const CUarrayMapInfo *m)
{
	return m->memOperationType == CU_MEM_OPERATION_TYPE_MAP ? handle_keep(v, m->memHandle.memHandle) : NULL;
}

/* A handle is looked up after the call: the program still has it, or has released it while it was being mapped, which
 * is a race of its own. */
static CUresult mapped(const CUarrayMapInfo *list, unsigned count, CUresult rc)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	for (unsigned i = 0; v != NULL && i < count; i++) {
		struct record *memory = keep(v, &list[i]);

		set_tiles(v, &list[i], memory);
		handle_drop(v, memory);
	}
	return rc;
}

VGPU_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
	return mapped(list, count, REAL(cuMemMapArrayAsync)(list, count, stream));
}

VGPU_EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
	return mapped(list, count, REAL(cuMemMapArrayAsync_ptsz)(list, count, stream));
}
