/* The launch calls of CUDA 2: block shape, shared memory and parameters are set on the function first. */
#include <string.h>

#include "abi/cuda_api.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/launch.h"
#include "sim/cuda/module.h"

static CUresult enter_function(CUfunction function, struct cu_old_launch **out)
{
	CUresult rc = cu_enter();
	struct CUfunc_st *f;

	if (rc != CUDA_SUCCESS)
		return rc;
	f = cu_function_get(function);
	if (f == NULL)
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	*out = &f->old;
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
	struct cu_old_launch *old = NULL;
	CUresult rc = x > 0 && y > 0 && z > 0 ? enter_function(function, &old) : CUDA_ERROR_INVALID_VALUE;

	if (rc != CUDA_SUCCESS)
		return rc;
	old->block[0] = (unsigned)x;
	old->block[1] = (unsigned)y;
	old->block[2] = (unsigned)z;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes)
{
	struct cu_old_launch *old = NULL;
	CUresult rc = enter_function(function, &old);

	if (rc != CUDA_SUCCESS)
		return rc;
	old->shared_bytes = bytes;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuParamSetSize(CUfunction function, unsigned bytes)
{
	struct cu_old_launch *old = NULL;
	CUresult rc = bytes <= sizeof old->params ? enter_function(function, &old) : CUDA_ERROR_INVALID_VALUE;

	if (rc != CUDA_SUCCESS)
		return rc;
	old->param_bytes = bytes;
	return cu_leave(CUDA_SUCCESS);
}

static CUresult set_param(CUfunction function, int offset, const void *value, size_t bytes)
{
	struct cu_old_launch *old = NULL;
	CUresult rc;

	if (offset < 0 || value == NULL || bytes > sizeof old->params || (size_t)offset > sizeof old->params - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	rc = enter_function(function, &old);
	if (rc != CUDA_SUCCESS)
		return rc;
	memcpy(old->params + offset, value, bytes);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuParamSeti(CUfunction function, int offset, unsigned value)
{
	return set_param(function, offset, &value, sizeof value);
}

CU_EXPORT CUresult cuParamSetf(CUfunction function, int offset, float value)
{
	return set_param(function, offset, &value, sizeof value);
}

CU_EXPORT CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes)
{
	return set_param(function, offset, value, bytes);
}

static CUresult launch(CUfunction function, int width, int height, CUstream stream)
{
	struct cu_old_launch *at = NULL, old;
	CUresult rc = width > 0 && height > 0 ? enter_function(function, &at) : CUDA_ERROR_INVALID_VALUE;

	if (rc != CUDA_SUCCESS)
		return rc;
	old = *at;
	(void)cu_leave(CUDA_SUCCESS);
	size_t bytes = old.param_bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, old.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
			  CU_LAUNCH_PARAM_END };

	return cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, old.block[0], old.block[1], old.block[2],
			      old.shared_bytes, stream, NULL, extra);
}

CU_EXPORT CUresult cuLaunch(CUfunction function)
{
	return launch(function, 1, 1, NULL);
}

CU_EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
	return launch(function, width, height, NULL);
}

CU_EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
	return launch(function, width, height, stream);
}
