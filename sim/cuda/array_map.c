/* Memory mapped into sparse arrays, tile by tile, and into those of deferred mapping, whole. A tile keeps the memory
 * that it lies in. Takes effect at once, not in stream order. */
#include <stdlib.h>

#include "sim/cuda/array.h"
#include "sim/cuda/array_layout.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/stream.h"
#include "sim/cuda/vmm.h"

struct cu_tiles {
	size_t count;
	struct cu_physical *memory[]; /* of each tile; NULL: none */
};

static void put(struct cu_tiles *t, size_t at, struct cu_physical *p)
{
	struct cu_physical *old = t->memory[at];

	if (p != NULL)
		p->mapped++;
	t->memory[at] = p;
	if (old != NULL) {
		old->mapped--;
		cu_physical_put(old);
	}
}

void cu_tiles_free(struct cu_tiles *t)
{
	for (size_t i = 0; t != NULL && i < t->count; i++)
		put(t, i, NULL);
	free(t);
}

struct grid {
	size_t x, y, z;
};

static struct grid grid_of(const struct cu_array_view *v, const struct array_tiling *t, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR d = array_level(v->desc, level);

	return (struct grid) { (d.Width + t->width - 1) / t->width, (d.Height + t->height - 1) / t->height,
			       t->depth > 1 ? (d.Depth + t->depth - 1) / t->depth : 1 };
}

/* Tiles before a level, of all layers; of all levels where `level` is tail_level. */
static size_t tiles_before(const struct cu_array_view *v, const struct array_tiling *t, unsigned level)
{
	size_t sum = 0;

	for (unsigned i = 0; i < level; i++) {
		struct grid g = grid_of(v, t, i);

		sum += g.x * g.y * g.z * t->layers;
	}
	return sum;
}

static size_t tail_tiles(const struct array_tiling *t)
{
	return t->tail_bytes / ARRAY_PAGE_BYTES;
}

static CUresult need_tiles(const struct cu_array_view *v, size_t count)
{
	if (*v->tiles == NULL) {
		*v->tiles = calloc(1, sizeof **v->tiles + count * sizeof(struct cu_physical *));
		if (*v->tiles == NULL)
			return CUDA_ERROR_OUT_OF_MEMORY;
		(*v->tiles)->count = count;
	}
	return CUDA_SUCCESS;
}

/* One operation: the tiles [low, high) of a level or of a mip tail, as a box. */
struct operation {
	struct cu_array_view view;
	struct cu_physical *memory; /* NULL: unmaps */
	uint64_t bytes;             /* of memory */
	size_t base;                /* the number of the tile 0, 0, 0 */
	struct grid grid, low, high;
};

static bool along(unsigned offset, unsigned extent, size_t size, unsigned tile, size_t *low, size_t *high)
{
	size_t end = (size_t)offset + extent;

	if (offset % tile != 0 || extent == 0 || end > size || (extent % tile != 0 && end != size))
		return false;
	*low = offset / tile;
	*high = (end + tile - 1) / tile;
	return true;
}

static bool of_level(struct operation *o, const struct array_tiling *t, const CUarrayMapInfo *m)
{
	unsigned level = m->subresource.sparseLevel.level, layer = m->subresource.sparseLevel.layer;

	if (level >= t->tail_level || layer >= t->layers)
		return false;
	CUDA_ARRAY3D_DESCRIPTOR d = array_level(o->view.desc, level);

	o->grid = grid_of(&o->view, t, level);
	o->base = tiles_before(&o->view, t, level) + o->grid.x * o->grid.y * o->grid.z * layer;
	return along(m->subresource.sparseLevel.offsetX, m->subresource.sparseLevel.extentWidth, d.Width, t->width,
		     &o->low.x, &o->high.x) &&
	       along(m->subresource.sparseLevel.offsetY, m->subresource.sparseLevel.extentHeight, d.Height, t->height,
		     &o->low.y, &o->high.y) &&
	       along(m->subresource.sparseLevel.offsetZ, m->subresource.sparseLevel.extentDepth,
		     t->depth > 1 ? d.Depth : 1, t->depth, &o->low.z, &o->high.z);
}

static bool of_tail(struct operation *o, const struct array_tiling *t, const CUarrayMapInfo *m)
{
	uint64_t offset = m->subresource.miptail.offset, size = m->subresource.miptail.size;
	unsigned layer = m->subresource.miptail.layer;

	if (layer >= t->layers || size == 0 || (offset | size) % ARRAY_PAGE_BYTES != 0 || size > t->tail_bytes ||
	    offset > t->tail_bytes - size)
		return false;
	o->base = tiles_before(&o->view, t, t->tail_level) + tail_tiles(t) * layer;
	o->grid = (struct grid) { tail_tiles(t), 1, 1 };
	o->low = (struct grid) { offset / ARRAY_PAGE_BYTES, 0, 0 };
	o->high = (struct grid) { (offset + size) / ARRAY_PAGE_BYTES, 1, 1 };
	return true;
}

static bool find_tiling(const struct cu_array_view *v, struct array_tiling *t)
{
	return (v->desc->Flags & CUDA_ARRAY3D_SPARSE) != 0 && array_tiling(v->desc, v->levels, t);
}

/* Of deferred mapping: one tile, whatever the operation says of a part. */
static CUresult find_part(struct operation *o, const CUarrayMapInfo *m)
{
	struct array_tiling t;

	if ((o->view.desc->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) {
		o->grid = o->high = (struct grid) { 1, 1, 1 };
		o->bytes = o->view.bytes;
		return need_tiles(&o->view, 1);
	}
	if (!find_tiling(&o->view, &t) ||
	    !(m->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL ? of_level(o, &t, m)
										  : of_tail(o, &t, m)))
		return CUDA_ERROR_INVALID_VALUE;
	o->bytes = (o->high.x - o->low.x) * (o->high.y - o->low.y) * (o->high.z - o->low.z) * ARRAY_PAGE_BYTES;
	return need_tiles(&o->view, tiles_before(&o->view, &t, t.tail_level) + tail_tiles(&t) * t.layers);
}

static CUresult check(struct operation *o, const CUarrayMapInfo *m, unsigned device)
{
	bool maps = m->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
	bool found = m->resourceType == CU_RESOURCE_TYPE_ARRAY ? cu_array_view(m->resource.array, &o->view)
							       : m->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
									 cu_mipmap_view(m->resource.mipmap, &o->view);

	if (!found || (!maps && m->memOperationType != CU_MEM_OPERATION_TYPE_UNMAP) || m->flags != 0 ||
	    m->deviceBitMask != 1U << device)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = find_part(o, m);

	if (rc != CUDA_SUCCESS || !maps)
		return rc;
	o->memory = cu_physical_of(m->memHandle.memHandle);
	if (o->memory == NULL || m->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC || o->memory->multicast != NULL ||
	    o->memory->device != device || (o->memory->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0 ||
	    m->offset % ARRAY_PAGE_BYTES != 0 || o->bytes > o->memory->bytes || m->offset > o->memory->bytes - o->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static void apply(const struct operation *o)
{
	for (size_t z = o->low.z; z < o->high.z; z++)
		for (size_t y = o->low.y; y < o->high.y; y++)
			for (size_t x = o->low.x; x < o->high.x; x++)
				put(*o->view.tiles, o->base + (z * o->grid.y + y) * o->grid.x + x, o->memory);
}

/* All operations or none. */
static CUresult map_all(const CUarrayMapInfo *list, unsigned count, unsigned device)
{
	for (unsigned i = 0; i < count; i++) {
		struct operation o = { .memory = NULL };
		CUresult rc = check(&o, &list[i], device);

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	for (unsigned i = 0; i < count; i++) {
		struct operation o = { .memory = NULL };

		if (check(&o, &list[i], device) == CUDA_SUCCESS)
			apply(&o);
	}
	return CUDA_SUCCESS;
}

static CUresult map_arrays(const CUarrayMapInfo *list, unsigned count, CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (list == NULL && count > 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	rc = cu_stream_get(ctx, stream, per_thread, &s);
	return cu_leave(rc == CUDA_SUCCESS ? map_all(list, count, s.ctx->device) : rc);
}

CU_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
	return map_arrays(list, count, stream, false);
}

CU_EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
	return map_arrays(list, count, stream, true);
}

static CUresult properties(CUDA_ARRAY_SPARSE_PROPERTIES *out, bool found, const struct cu_array_view *v)
{
	struct array_tiling t;

	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!find_tiling(v, &t))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUDA_ARRAY_SPARSE_PROPERTIES) { .tileExtent = { t.width, t.height, t.depth },
						.miptailFirstLevel = t.tail_level,
						.miptailSize = t.tail_bytes };
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray a)
{
	struct cu_array_view v;
	CUresult rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(properties(out, cu_array_view(a, &v), &v));
}

CU_EXPORT CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray m)
{
	struct cu_array_view v;
	CUresult rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(properties(out, cu_mipmap_view(m, &v), &v));
}
