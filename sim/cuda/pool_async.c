/* The calls that allocate from and free to pools, and which pool a device uses. */
#include "sim/cuda/capture.h"
#include "sim/cuda/graph_memory.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/mem.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

/* On a capturing stream: a node of the graph; nothing is allocated now, and not from the pool. */
static CUresult capture_alloc(struct cu_captured *c, unsigned device, CUmemoryPool pool, size_t bytes, CUdeviceptr *out)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = { .bytesize = bytes };

	if (out == NULL || bytes == 0 || (pool != NULL && (!cu_handle_is(pool, CU_POOL) || pool->doomed)))
		return CUDA_ERROR_INVALID_VALUE;
	if (pool != NULL)
		device = pool->device;
	if (bytes > cu_info(device)->memory_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.poolProps.location = (CUmemLocation) { CU_MEM_LOCATION_TYPE_DEVICE, (int)device };
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	CUresult rc = cu_graph_alloc_new(&p, c->capture->graph, &work.alloc);

	if (rc != CUDA_SUCCESS)
		return rc;
	CUdeviceptr ptr = work.alloc->params.dptr;

	rc = cu_captured_add(c, &work, NULL);
	if (rc == CUDA_SUCCESS)
		*out = ptr;
	return rc;
}

static CUresult capture_free(struct cu_captured *c, CUdeviceptr ptr)
{
	struct cu_work work;
	CUresult rc = cu_work_of_free(c->capture->graph, ptr, &work);

	if (rc == CUDA_SUCCESS)
		rc = cu_captured_add(c, &work, NULL);
	if (rc == CUDA_SUCCESS)
		cu_graph_frees(c->capture->graph, work.alloc);
	return rc;
}

/* pool NULL: the current one of the stream's device. */
static CUresult alloc_async(CUdeviceptr *out, size_t bytes, bool explicit_pool, CUmemoryPool pool, CUstream stream,
			    bool per_thread)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (explicit_pool && pool == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct cu_captured captured = { NULL, NULL };

	rc = cu_stream_get(ctx, stream, per_thread, &s);
	if (rc == CUDA_SUCCESS)
		rc = cu_captured_get(&s, &captured);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	if (captured.capture != NULL)
		return cu_leave(capture_alloc(&captured, s.ctx->device, pool, bytes, out));
	return cu_leave(cu_pool_alloc(s.ctx, pool, bytes, out));
}

CU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	return alloc_async(out, bytes, false, NULL, stream, false);
}

CU_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	return alloc_async(out, bytes, false, NULL, stream, true);
}

CU_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return alloc_async(out, bytes, true, pool, stream, false);
}

CU_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return alloc_async(out, bytes, true, pool, stream, true);
}

static CUresult free_async(CUdeviceptr ptr, CUstream stream, bool per_thread)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (ptr == 0)
		return cu_leave(CUDA_SUCCESS);
	struct cu_captured captured = { NULL, NULL };

	rc = cu_stream_get(ctx, stream, per_thread, &s);
	if (rc == CUDA_SUCCESS)
		rc = cu_captured_get(&s, &captured);
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	return cu_leave(captured.capture != NULL ? capture_free(&captured, ptr) : cu_mem_free(ptr));
}

CU_EXPORT CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	return free_async(ptr, stream, false);
}

CU_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	return free_async(ptr, stream, true);
}

static CUresult get_pool(CUmemoryPool *out, CUdevice dev, bool current)
{
	struct cu_device *device;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = cu_pool_default((unsigned)dev);
	if (*out == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	if (current)
		*out = device->current_pool;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice dev)
{
	return get_pool(out, dev, false);
}

CU_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice dev)
{
	return get_pool(out, dev, true);
}

static CUresult set_pool(CUdevice dev, CUmemoryPool pool)
{
	struct cu_device *device;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(pool, CU_POOL) || pool->doomed || pool->device != (unsigned)dev)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (cu_pool_default((unsigned)dev) == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	device->current_pool = pool;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	return set_pool(dev, pool);
}

/* By place and kind since 13.0. Pools of managed memory are not simulated; the host has its default pool alone. */
static CUresult place_of(const CUmemLocation *where, int type, CUdevice *dev)
{
	if (where == NULL || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	if (where->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	*dev = where->id;
	return CUDA_SUCCESS;
}

static CUresult get_pool_of_host(CUmemoryPool *out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = cu_pool_of_host();
	return cu_leave(*out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult get_pool_at(CUmemoryPool *out, const CUmemLocation *where, int allocation_type, bool current)
{
	CUdevice dev;
	CUresult rc;

	if (where != NULL && cu_place_is_host(where) && allocation_type == CU_MEM_ALLOCATION_TYPE_PINNED)
		return get_pool_of_host(out);
	rc = place_of(where, allocation_type, &dev);
	return rc == CUDA_SUCCESS ? get_pool(out, dev, current) : rc;
}

CU_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *where, int allocation_type)
{
	return get_pool_at(out, where, allocation_type, false);
}

CU_EXPORT CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *where, int allocation_type)
{
	return get_pool_at(out, where, allocation_type, true);
}

CU_EXPORT CUresult cuMemSetMemPool(CUmemLocation *where, int allocation_type, CUmemoryPool pool)
{
	CUdevice dev;
	CUresult rc = place_of(where, allocation_type, &dev);

	return rc == CUDA_SUCCESS ? set_pool(dev, pool) : rc;
}
