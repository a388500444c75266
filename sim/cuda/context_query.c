/* What can be asked of a context, and its settings, which are kept and have no effect. */
#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/state.h"

static CUresult enter_context_of(CUcontext handle, struct CUctx_st **out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_context_get(handle, out);
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

static CUresult get_device(CUdevice *out, CUcontext handle)
{
	struct CUctx_st *ctx;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_context_of(handle, &ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = (CUdevice)ctx->device;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxGetDevice(CUdevice *out)
{
	return get_device(out, NULL);
}

CU_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext ctx)
{
	return get_device(out, ctx);
}

static CUresult synchronize(CUcontext handle)
{
	struct CUctx_st *ctx;
	CUresult rc = enter_context_of(handle, &ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	unsigned device = ctx->device;

	rc = cu_capture_guard();
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	rc = cu_wait(ctx, ctx->last_ticket);
	cu_pools_release(device);
	return cu_leave(rc);
}

CU_EXPORT CUresult cuCtxSynchronize(void)
{
	return synchronize(NULL);
}

CU_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	return synchronize(ctx);
}

CU_EXPORT CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *out)
{
	struct CUctx_st *ctx;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_context_of(handle, &ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = ctx->api_version;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long *out)
{
	struct CUctx_st *ctx;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_context_of(handle, &ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = ctx->id;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxGetFlags(unsigned *out)
{
	struct CUctx_st *ctx;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = ctx->flags;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxSetFlags(unsigned flags)
{
	struct CUctx_st *ctx;

	if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	ctx->flags = flags;
	return cu_leave(CUDA_SUCCESS);
}

/* A setting of small numbers, read or written. */
static CUresult setting(bool shared, const int *set, int *get)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	int *value = shared ? &ctx->shared_config : &ctx->cache_config;

	if (set != NULL)
		*value = *set;
	else
		*get = *value;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache *out)
{
	return out == NULL ? CUDA_ERROR_INVALID_VALUE : setting(false, NULL, out);
}

CU_EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : setting(false, &config, NULL);
}

CU_EXPORT CUresult cuCtxGetSharedMemConfig(CUsharedconfig *out)
{
	return out == NULL ? CUDA_ERROR_INVALID_VALUE : setting(true, NULL, out);
}

CU_EXPORT CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : setting(true, &config, NULL);
}

/* As cards since Pascal answer. */
CU_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (least != NULL)
		*least = 0;
	if (greatest != NULL)
		*greatest = -5;
	return cu_leave(CUDA_SUCCESS);
}
