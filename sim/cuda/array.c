#include "sim/cuda/array.h"

#include <stdlib.h>

#include "sim/cuda/array_layout.h"
#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"

/* One for an array and for a mipmapped array. */
struct memory {
	struct link link; /* on its context's list */
	struct CUctx_st *ctx;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned levels;
	uint64_t bytes; /* with all levels */
	struct cu_tiles *tiles;
	uint64_t charged; /* 0: without memory of its own (sparse, deferred mapping) */
};

struct CUarray_st {
	struct memory memory;
	CUmipmappedArray mipmap; /* NULL, or whose level it is: that has the memory */
};

struct CUmipmappedArray_st {
	struct memory memory;
	CUarray *level; /* made when first asked for */
};

static CUresult charge(struct memory *m, struct CUctx_st *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	const unsigned unmapped = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

	*m = (struct memory) { .ctx = ctx, .desc = *desc, .levels = levels, .bytes = array_bytes(desc, levels) };
	if ((desc->Flags & unmapped) != 0)
		return CUDA_SUCCESS;
	CUresult rc = cu_charge(ctx->device, SIM_MEM_DATA, m->bytes);

	if (rc == CUDA_SUCCESS)
		m->charged = m->bytes;
	return rc;
}

static void memory_free(struct memory *m)
{
	cu_tiles_free(m->tiles);
	cu_discharge(m->ctx->device, SIM_MEM_DATA, m->charged);
	link_remove(&m->link);
}

static void array_free(CUarray a)
{
	memory_free(&a->memory);
	cu_handle_remove(a);
	free(a);
}

static void mipmap_free(CUmipmappedArray m)
{
	for (unsigned i = 0; i < m->memory.levels; i++)
		if (m->level[i] != NULL)
			array_free(m->level[i]);
	memory_free(&m->memory);
	cu_handle_remove(m);
	free(m->level);
	free(m);
}

void cu_arrays_drop(struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&ctx->mipmaps, it)
		mipmap_free(HM_CONTAINER(it, struct CUmipmappedArray_st, memory.link));
	LIST_FOR_EACH (&ctx->arrays, it)
		array_free(HM_CONTAINER(it, struct CUarray_st, memory.link));
}

static struct cu_array_view view_of(struct memory *m)
{
	return (struct cu_array_view) { .desc = &m->desc, .levels = m->levels, .bytes = m->bytes, .tiles = &m->tiles };
}

bool cu_array_view(CUarray a, struct cu_array_view *out)
{
	if (!cu_handle_is(a, CU_ARRAY) || a->mipmap != NULL)
		return false;
	*out = view_of(&a->memory);
	return true;
}

bool cu_mipmap_view(CUmipmappedArray m, struct cu_array_view *out)
{
	if (!cu_handle_is(m, CU_MIPMAP))
		return false;
	*out = view_of(&m->memory);
	return true;
}

static CUresult array_new(CUarray *out, struct CUctx_st *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct CUarray_st *a = calloc(1, sizeof *a);

	if (a == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult rc = charge(&a->memory, ctx, desc, 1);

	if (rc == CUDA_SUCCESS && !cu_handle_add(a, CU_ARRAY)) {
		memory_free(&a->memory);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		free(a);
		return rc;
	}
	link_append(&ctx->arrays, &a->memory.link);
	*out = a;
	return CUDA_SUCCESS;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(array_desc_ok(desc) ? array_new(out, ctx, desc) : CUDA_ERROR_INVALID_VALUE);
}

CU_EXPORT CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	if (out == NULL || d == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return create(out, &(CUDA_ARRAY3D_DESCRIPTOR) { d->Width, d->Height, 0, d->Format, d->NumChannels, 0 });
}

CU_EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	if (out == NULL || d == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return create(out, &(CUDA_ARRAY3D_DESCRIPTOR) { d->Width, d->Height, 0, d->Format, d->NumChannels, 0 });
}

CU_EXPORT CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	if (out == NULL || d == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return create(
		out, &(CUDA_ARRAY3D_DESCRIPTOR) { d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags });
}

CU_EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return out == NULL || d == NULL ? CUDA_ERROR_INVALID_VALUE : create(out, d);
}

/* Takes the lock and looks an array up. */
static CUresult enter_array(CUarray a)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(a, CU_ARRAY) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_HANDLE);
}

/* Waits for the context's work first, so that no kernel uses what is freed. */
CU_EXPORT CUresult cuArrayDestroy(CUarray a)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(a, CU_ARRAY) || a->mipmap != NULL)
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	ctx = a->memory.ctx;
	rc = cu_wait(ctx, ctx->last_ticket);
	if (rc == CUDA_SUCCESS && cu_handle_is(a, CU_ARRAY))
		array_free(a);
	return cu_leave(rc);
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray a)
{
	CUresult rc = enter_array(a);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = a->memory.desc;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray a)
{
	return out == NULL ? CUDA_ERROR_INVALID_VALUE : describe(out, a);
}

/* Sizes that the CUDA 2 interface can say: a card's arrays are never larger. */
CU_EXPORT CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *out, CUarray a)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUresult rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : describe(&d, a);

	if (rc == CUDA_SUCCESS)
		*out = (CUDA_ARRAY3D_DESCRIPTOR_v1) { (unsigned)d.Width, (unsigned)d.Height, (unsigned)d.Depth,
						      d.Format,          d.NumChannels,      d.Flags };
	return rc;
}

CU_EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray a)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUresult rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : describe(&d, a);

	if (rc == CUDA_SUCCESS)
		*out = (CUDA_ARRAY_DESCRIPTOR) { d.Width, d.Height, d.Format, d.NumChannels };
	return rc;
}

CU_EXPORT CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *out, CUarray a)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUresult rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : describe(&d, a);

	if (rc == CUDA_SUCCESS)
		*out = (CUDA_ARRAY_DESCRIPTOR_v1) { (unsigned)d.Width, (unsigned)d.Height, d.Format, d.NumChannels };
	return rc;
}

/* The driver answers for arrays of deferred mapping only: those that a program must bring memory for. */
static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const struct memory *m, CUdevice dev)
{
	if (out == NULL || (m->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0 || (unsigned)dev >= cu.count)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS) { .size = m->bytes, .alignment = ARRAY_PAGE_BYTES };
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray a, CUdevice dev)
{
	CUresult rc = enter_array(a);

	return rc == CUDA_SUCCESS ? cu_leave(requirements(out, &a->memory, dev)) : rc;
}

static CUresult mipmap_new(CUmipmappedArray *out, struct CUctx_st *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc,
			   unsigned levels)
{
	struct CUmipmappedArray_st *m = calloc(1, sizeof *m);
	CUarray *level = calloc(levels, sizeof(CUarray));
	CUresult rc = m != NULL && level != NULL ? charge(&m->memory, ctx, desc, levels) : CUDA_ERROR_OUT_OF_MEMORY;

	if (rc == CUDA_SUCCESS && !cu_handle_add(m, CU_MIPMAP)) {
		memory_free(&m->memory);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		free(level);
		free(m);
		return rc;
	}
	m->level = level;
	link_append(&ctx->mipmaps, &m->memory.link);
	*out = m;
	return CUDA_SUCCESS;
}

/* More levels than there are sizes are cut, none is one. */
CU_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	struct CUctx_st *ctx;

	if (out == NULL || desc == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!array_desc_ok(desc))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	levels = levels == 0 ? 1 : HM_MIN(levels, array_levels_max(desc));
	return cu_leave(mipmap_new(out, ctx, desc, levels));
}

static CUresult enter_mipmap(CUmipmappedArray m)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(m, CU_MIPMAP) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult level_new(CUmipmappedArray m, unsigned level)
{
	struct CUarray_st *a = calloc(1, sizeof *a);

	if (a == NULL || !cu_handle_add(a, CU_ARRAY)) {
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->mipmap = m;
	a->memory = (struct memory) { .ctx = m->memory.ctx, .desc = array_level(&m->memory.desc, level), .levels = 1 };
	a->memory.bytes = array_bytes(&a->memory.desc, 1);
	m->level[level] = a;
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray m, unsigned level)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_mipmap(m);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (level >= m->memory.levels)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (m->level[level] == NULL)
		rc = level_new(m, level);
	if (rc == CUDA_SUCCESS)
		*out = m->level[level];
	return cu_leave(rc);
}

CU_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray m)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(m, CU_MIPMAP))
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	ctx = m->memory.ctx;
	rc = cu_wait(ctx, ctx->last_ticket);
	if (rc == CUDA_SUCCESS && cu_handle_is(m, CU_MIPMAP))
		mipmap_free(m);
	return cu_leave(rc);
}

CU_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray m,
							 CUdevice dev)
{
	CUresult rc = enter_mipmap(m);

	return rc == CUDA_SUCCESS ? cu_leave(requirements(out, &m->memory, dev)) : rc;
}
