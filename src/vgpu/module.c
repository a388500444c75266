/* Code and globals of modules and libraries lie in device memory: measured after each load. What a driver loads lazily,
 * at a function's first use, is found by the next measurement. */
#include "vgpu/hooks.h"
#include "vgpu/overhead.h"

static CUresult module_loaded(CUresult rc, CUmodule *out)
{
	if (rc != CUDA_SUCCESS || overhead_grew())
		return rc;
	cuModuleUnload(*out);
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	return module_loaded(REAL(cuModuleLoad)(out, path), out);
}

VGPU_EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	return module_loaded(REAL(cuModuleLoadData)(out, image), out);
}

VGPU_EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options,
					void **values)
{
	return module_loaded(REAL(cuModuleLoadDataEx)(out, image, count, options, values), out);
}

static CUresult unloaded(CUresult rc)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL)
		overhead_settle(v);
	return rc;
}

VGPU_EXPORT CUresult cuModuleUnload(CUmodule module)
{
	return unloaded(REAL(cuModuleUnload)(module));
}

static CUresult library_loaded(CUresult rc, CUlibrary *out)
{
	if (rc != CUDA_SUCCESS || overhead_grew())
		return rc;
	cuLibraryUnload(*out);
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values,
				       unsigned jit_count, CUlibraryOption *options, void **values, unsigned count)
{
	return library_loaded(REAL(cuLibraryLoadData)(out, code, jit, jit_values, jit_count, options, values, count),
			      out);
}

VGPU_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit, void **jit_values,
					   unsigned jit_count, CUlibraryOption *options, void **values, unsigned count)
{
	return library_loaded(
		REAL(cuLibraryLoadFromFile)(out, path, jit, jit_values, jit_count, options, values, count), out);
}

VGPU_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
	return unloaded(REAL(cuLibraryUnload)(library));
}
