/* Memory of cuMemAlloc in another process, and memory of pools. */
#include <string.h>

#include "sim/cuda/handles.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/share.h"
#include "sim/cuda/space.h"

/* Takes the lock and finds the allocation that starts at ptr. */
static CUresult enter_extent(CUdeviceptr ptr, struct cu_extent *x)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_extent_at(ptr, x) && x->base == ptr ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult write_ticket(const struct cu_extent *x, enum cu_ticket_kind kind, void *out)
{
	struct cu_ticket t;
	CUresult rc = cu_ticket_write(x->region, x->base - x->region->base, x->size, kind, &t);

	if (rc == CUDA_SUCCESS)
		memcpy(out, &t, sizeof t);
	return rc;
}

CU_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr ptr)
{
	struct cu_extent x;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_extent(ptr, &x);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (x.region->kind != CU_REGION_BLOCK && x.region->kind != CU_REGION_LARGE)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(write_ticket(&x, CU_TICKET_IPC, out));
}

static CUresult open_handle(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
	struct cu_region *r;
	struct cu_ticket t;
	struct CUctx_st *ctx;

	if (out == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	memcpy(&t, handle, sizeof t);
	rc = cu_ticket_open(&t, CU_TICKET_IPC, ctx, &r);
	if (rc == CUDA_SUCCESS)
		*out = r->base + r->import.offset;
	return cu_leave(rc);
}

CU_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	return open_handle(out, &handle, flags);
}

CU_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	return open_handle(out, &handle, flags);
}

CU_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct cu_extent x;
	CUresult rc = enter_extent(ptr, &x);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (x.region->kind != CU_REGION_IMPORT || x.region->import.freed_by_free)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	cu_import_close(x.region);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr ptr)
{
	struct cu_extent x;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_extent(ptr, &x);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (x.region->kind != CU_REGION_POOL || x.region->pool->handle_types == 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(write_ticket(&x, CU_TICKET_POOL, out));
}

CU_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	struct cu_region *r;
	struct cu_ticket t;
	struct CUctx_st *ctx;

	if (out == NULL || data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(pool, CU_POOL) || !pool->imported)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	memcpy(&t, data, sizeof t);
	rc = cu_ticket_open(&t, CU_TICKET_POOL, ctx, &r);
	if (rc == CUDA_SUCCESS) {
		r->import.freed_by_free = true;
		*out = r->base + r->import.offset;
	}
	return cu_leave(rc);
}
