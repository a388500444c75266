/* The calls that allocate from and free to pools, and which pool a device uses. */
#include "sim/cuda/handles.h"
#include "sim/cuda/mem.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

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
	rc = cu_stream_get(ctx, stream, per_thread, &s);
	return cu_leave(rc == CUDA_SUCCESS ? cu_pool_alloc(s.ctx, pool, bytes, out) : rc);
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
	rc = cu_stream_get(ctx, stream, per_thread, &s);
	return cu_leave(rc == CUDA_SUCCESS ? cu_mem_free(ptr) : rc);
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

CU_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
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
