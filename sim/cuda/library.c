/* Libraries: code that is bound to no context, loaded once for all of them. */
#include <stdlib.h>

#include "core/cleanup.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/module.h"

static CUresult load_library(CUlibrary *out, const void *image)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || image == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct CUlib_st *lib = calloc(1, sizeof *lib);

	if (lib == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	lib->module.library = lib;
	rc = cu_module_fill(&lib->module, image, 0);
	if (rc == CUDA_SUCCESS && (!cu_handle_add(&lib->module, CU_MODULE) || !cu_handle_add(lib, CU_LIBRARY))) {
		cu_handle_remove(&lib->module);
		cu_module_clear(&lib->module);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		free(lib);
		return cu_leave(rc);
	}
	*out = lib;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit HM_UNUSED,
				     void **jit_values HM_UNUSED, unsigned jit_count HM_UNUSED,
				     CUlibraryOption *options HM_UNUSED, void **values HM_UNUSED,
				     unsigned count HM_UNUSED)
{
	return load_library(out, code);
}

CU_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit HM_UNUSED,
					 void **jit_values HM_UNUSED, unsigned jit_count HM_UNUSED,
					 CUlibraryOption *options HM_UNUSED, void **values HM_UNUSED,
					 unsigned count HM_UNUSED)
{
	CUresult rc;
	hm_auto_heap char *text = cu_image_read(path, &rc);

	return text != NULL ? load_library(out, text) : rc;
}

/* Takes the lock and looks a library up. */
static CUresult enter_library(CUlibrary lib)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(lib, CU_LIBRARY) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_HANDLE);
}

CU_EXPORT CUresult cuLibraryUnload(CUlibrary lib)
{
	CUresult rc = enter_library(lib);

	if (rc != CUDA_SUCCESS)
		return rc;
	cu_library_unload_all(lib);
	cu_module_clear(&lib->module);
	cu_handle_remove(lib);
	cu_handle_remove(&lib->module);
	free(lib);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary lib, const char *name)
{
	if (out == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_library(lib);
	struct CUfunc_st *f;

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_function_find(&lib->module, name, &f);
	if (rc == CUDA_SUCCESS)
		*out = (CUkernel)(void *)f;
	return cu_leave(rc);
}

CU_EXPORT CUresult cuLibraryGetKernelCount(unsigned *out, CUlibrary lib)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_library(lib);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = lib->module.ptx.count;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuLibraryGetModule(CUmodule *out, CUlibrary lib)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_library(lib);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = &lib->module;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned count, CUlibrary lib)
{
	if (out == NULL || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_library(lib);

	if (rc == CUDA_SUCCESS)
		cu_functions_list(&lib->module, (const void **)out, count);
	return rc == CUDA_SUCCESS ? cu_leave(rc) : rc;
}

CU_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *out, size_t *bytes, CUlibrary lib, const char *name)
{
	CUresult rc = enter_library(lib);

	if (rc != CUDA_SUCCESS)
		return rc;
	cu_leave(CUDA_SUCCESS);
	return cuModuleGetGlobal_v2(out, bytes, &lib->module, name);
}

/* The function of the current context, whose code comes with it. */
CU_EXPORT CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
	struct CUctx_st *ctx;
	struct CUfunc_st *f;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	f = cu_function_get(kernel);
	rc = f != NULL ? cu_function_load(f, ctx) : CUDA_ERROR_INVALID_HANDLE;
	if (rc == CUDA_SUCCESS)
		*out = f;
	return cu_leave(rc);
}
