/* cuMemAlloc and its like. As on a real card, an allocation of 1 MiB or more is rounded up to pages of 2 MiB of its
 * own; smaller ones share a page ("block"), each aligned to 512 B, and the page is given back when the last is freed.
 * What the card is charged for are pages. */
#include "sim/cuda/mem.h"

#include "abi/cuda_v1.h"
#include "sim/cuda/capture.h"
#include "sim/cuda/graph_memory.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/share.h"
#include "sim/cuda/space.h"
#include "sim/cuda/stream.h"

#define LARGE_BYTES ((uint64_t)1 << 20)
/* Rows start at multiples of this, as cuMemAllocPitch gives on all current cards. */
enum { PITCH_BYTES = 512 };

static CUresult new_charged(enum cu_region_kind kind, struct CUctx_st *ctx, uint64_t bytes, struct cu_region **out)
{
	*out = cu_region_new(kind, ctx->device, bytes, 0, 0);
	if (*out == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->ctx = ctx;
	return cu_region_charge(out);
}

static CUresult alloc_large(struct CUctx_st *ctx, uint64_t bytes, CUdeviceptr *out)
{
	struct cu_region *r;
	CUresult rc = new_charged(CU_REGION_LARGE, ctx, bytes, &r);

	if (rc != CUDA_SUCCESS)
		return rc;
	r->size = cu_round(bytes, CU_ALIGN_BYTES);
	*out = r->base;
	return CUDA_SUCCESS;
}

static CUresult new_block(struct CUctx_st *ctx, struct cu_region **out)
{
	CUresult rc = new_charged(CU_REGION_BLOCK, ctx, CU_PAGE_BYTES, out);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!granules_init(&(*out)->granules, CU_PAGE_BYTES / CU_ALIGN_BYTES)) {
		cu_region_free(*out);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*out)->granule_bytes = CU_ALIGN_BYTES;
	link_append(&ctx->blocks, &(*out)->room);
	return CUDA_SUCCESS;
}

static CUresult alloc_small(struct CUctx_st *ctx, uint64_t bytes, CUdeviceptr *out)
{
	size_t n = (bytes + CU_ALIGN_BYTES - 1) / CU_ALIGN_BYTES, at = SIZE_MAX;
	struct cu_region *r = NULL;

	LIST_FOR_EACH (&ctx->blocks, it) {
		r = HM_CONTAINER(it, struct cu_region, room);
		at = granules_take(&r->granules, n);
		if (at != SIZE_MAX)
			break;
	}
	if (at == SIZE_MAX) {
		CUresult rc = new_block(ctx, &r);

		if (rc != CUDA_SUCCESS)
			return rc;
		at = granules_take(&r->granules, n);
	}
	if (r->granules.used == r->granules.count)
		link_remove(&r->room);
	*out = r->base + at * CU_ALIGN_BYTES;
	return CUDA_SUCCESS;
}

static CUresult alloc(struct CUctx_st *ctx, uint64_t bytes, CUdeviceptr *out)
{
	/* Above the card's own size no sum below can overflow. */
	if (bytes > cu_info(ctx->device)->memory_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return bytes >= LARGE_BYTES ? alloc_large(ctx, bytes, out) : alloc_small(ctx, bytes, out);
}

CUresult cu_mem_free(CUdeviceptr ptr)
{
	struct cu_extent x;

	if (!cu_extent_at(ptr, &x) || x.base != ptr)
		return CUDA_ERROR_INVALID_VALUE;
	switch (x.region->kind) {
	case CU_REGION_LARGE:
	case CU_REGION_MANAGED: cu_region_free(x.region); return CUDA_SUCCESS;
	case CU_REGION_POOL: cu_pool_give(&x); return CUDA_SUCCESS;
	case CU_REGION_GRAPH: return cu_graph_free_outside(x.region->graph_alloc);
	case CU_REGION_IMPORT:
		if (!x.region->import.freed_by_free)
			return CUDA_ERROR_INVALID_VALUE;
		cu_import_close(x.region);
		return CUDA_SUCCESS;
	case CU_REGION_VARIABLES:
	case CU_REGION_RESERVED: return CUDA_ERROR_INVALID_VALUE;
	case CU_REGION_BLOCK: break;
	}
	granules_give(&x.region->granules, (ptr - x.region->base) / CU_ALIGN_BYTES);
	if (x.region->granules.used == 0)
		cu_region_free(x.region);
	else if (!link_on_list(&x.region->room))
		link_append(&x.region->ctx->blocks, &x.region->room);
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
	struct CUctx_st *ctx;

	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || bytes == 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(alloc(ctx, bytes, out));
}

CU_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
				      unsigned element_bytes)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || pitch == NULL || width == 0 || height == 0 ||
	    (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	uint64_t row, bytes;

	if (__builtin_add_overflow(width, PITCH_BYTES - 1, &row) ||
	    __builtin_mul_overflow(row / PITCH_BYTES * PITCH_BYTES, height, &bytes))
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	rc = alloc(ctx, bytes, out);
	if (rc == CUDA_SUCCESS)
		*pitch = row / PITCH_BYTES * PITCH_BYTES;
	return cu_leave(rc);
}

/* Waits for the context's work first, as the real call does, so that no kernel uses what is freed. */
CU_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (ptr == 0)
		return cu_leave(CUDA_SUCCESS);
	rc = cu_wait(ctx, ctx->last_ticket);
	return cu_leave(rc == CUDA_SUCCESS ? cu_mem_free(ptr) : rc);
}

static CUresult get_info(size_t *free_bytes, size_t *total)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	const struct sim_card_info *info = cu_info(ctx->device);
	uint64_t used = sim_mem_used(cu.devices[ctx->device].card);

	if (free_bytes != NULL)
		*free_bytes = info->memory_bytes - HM_MIN(used, info->memory_bytes);
	if (total != NULL)
		*total = info->memory_bytes - info->reserved_bytes;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	return get_info(free_bytes, total);
}

/* The CUDA 2 interface cannot say more than 4 GiB. */
CU_EXPORT CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total)
{
	size_t left = 0, all = 0;
	CUresult rc = get_info(&left, &all);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (free_bytes != NULL)
		*free_bytes = (unsigned)HM_MIN(left, (size_t)UINT32_MAX);
	if (total != NULL)
		*total = (unsigned)HM_MIN(all, (size_t)UINT32_MAX);
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct CUctx_st *ctx;
	struct cu_extent x;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_extent_at(ptr, &x))
		return cu_leave(CUDA_ERROR_NOT_FOUND);
	if (base != NULL)
		*base = x.base;
	if (size != NULL)
		*size = x.size;
	return cu_leave(CUDA_SUCCESS);
}
