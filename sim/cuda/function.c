/* What can be asked of and set on a function or kernel. */
#include "sim/cuda/handles.h"
#include "sim/cuda/kernels.h"

/* Takes the lock and looks a function or kernel up. */
static CUresult enter_function(const void *handle, struct CUfunc_st **out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = cu_function_get(handle);
	return *out != NULL ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult get_name(const char **out, const void *handle)
{
	struct CUfunc_st *f;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_function(handle, &f);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = f->entry->name;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuFuncGetName(const char **out, CUfunction function)
{
	return get_name(out, function);
}

CU_EXPORT CUresult cuKernelGetName(const char **out, CUkernel kernel)
{
	return get_name(out, kernel);
}

CU_EXPORT CUresult cuFuncGetModule(CUmodule *out, CUfunction function)
{
	struct CUfunc_st *f;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_function(function, &f);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = f->module;
	return cu_leave(CUDA_SUCCESS);
}

static CUresult enter_function_here(CUfunction handle, struct CUfunc_st **out, struct CUctx_st **ctx)
{
	CUresult rc = cu_enter_context(ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = cu_function_get(handle);
	return *out != NULL ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_HANDLE);
}

CU_EXPORT CUresult cuFuncLoad(CUfunction function)
{
	struct CUfunc_st *f;
	struct CUctx_st *ctx;
	CUresult rc = enter_function_here(function, &f, &ctx);

	return rc == CUDA_SUCCESS ? cu_leave(cu_function_load(f, ctx)) : rc;
}

CU_EXPORT CUresult cuFuncIsLoaded(int *out, CUfunction function)
{
	struct CUfunc_st *f;
	struct CUctx_st *ctx;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_function_here(function, &f, &ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = cu_function_is_loaded(f, ctx);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction function)
{
	struct CUfunc_st *f;

	if (out == NULL || attribute < 0 || attribute > 16)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_function(function, &f);

	if (rc != CUDA_SUCCESS)
		return rc;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = 1024; break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = 16; break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = (int)f->module->ptx.target; break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *out = (int)f->max_dynamic_shared; break;
	default: *out = 0; break;
	}
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	struct CUfunc_st *f;
	CUresult rc = enter_function(function, &f);

	if (rc != CUDA_SUCCESS)
		return rc;
	unsigned device = f->module->ctx != NULL ? f->module->ctx->device : 0;

	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
	    (unsigned)value > cu_info(device)->shared_per_block_optin)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	f->max_dynamic_shared = (unsigned)value;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	struct CUfunc_st *f;

	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_function(function, &f);

	return rc == CUDA_SUCCESS ? cu_leave(rc) : rc;
}

static CUresult occupancy(int *out, CUfunction function, int threads, size_t shared_bytes)
{
	struct CUfunc_st *f;
	struct CUctx_st *ctx;

	if (out == NULL || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	f = cu_function_get(function);
	if (f == NULL)
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	*out = (int)cu_resident_blocks(ctx->device, (unsigned)threads, shared_bytes);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction function, int block_threads,
							       size_t shared_bytes)
{
	return occupancy(out, function, block_threads, shared_bytes);
}

CU_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction function,
									int block_threads, size_t shared_bytes,
									unsigned flags)
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : occupancy(out, function, block_threads, shared_bytes);
}
