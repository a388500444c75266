/* Code and globals of modules and libraries lie in device memory: measured after each load. A driver may also load them
 * lazily, at a function's first launch: expected from when the function is handed out. */
#include "vgpu/hooks.h"
#include "vgpu/overhead.h"
#include "vgpu/throttle.h"

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

VGPU_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
	return module_loaded(REAL(cuModuleLoadFatBinary)(out, image), out);
}

static CUresult unloaded(CUresult rc)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	throttle_settle();
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

static CUresult handed_out(CUresult rc)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL)
		overhead_expect(v);
	return rc;
}

#define HANDS_OUT(name, params, args)                                                                                  \
	VGPU_EXPORT CUresult name params                                                                               \
	{                                                                                                              \
		return handed_out(REAL(name) args);                                                                    \
	}

HANDS_OUT(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char *name), (out, module, name))
HANDS_OUT(cuModuleEnumerateFunctions, (CUfunction * out, unsigned count, CUmodule module), (out, count, module))
HANDS_OUT(cuModuleGetGlobal_v2, (CUdeviceptr * out, size_t *bytes, CUmodule module, const char *name),
	  (out, bytes, module, name))
HANDS_OUT(cuLibraryGetKernel, (CUkernel * out, CUlibrary library, const char *name), (out, library, name))
HANDS_OUT(cuLibraryEnumerateKernels, (CUkernel * out, unsigned count, CUlibrary library), (out, count, library))
HANDS_OUT(cuLibraryGetModule, (CUmodule * out, CUlibrary library), (out, library))
HANDS_OUT(cuLibraryGetGlobal, (CUdeviceptr * out, size_t *bytes, CUlibrary library, const char *name),
	  (out, bytes, library, name))
HANDS_OUT(cuLibraryGetManaged, (CUdeviceptr * out, size_t *bytes, CUlibrary library, const char *name),
	  (out, bytes, library, name))
HANDS_OUT(cuLibraryGetUnifiedFunction, (void **out, CUlibrary library, const char *name), (out, library, name))
HANDS_OUT(cuKernelGetFunction, (CUfunction * out, CUkernel kernel), (out, kernel))

/* Loaded stays loaded: what does not fit is charged all the same, and the caller told. */
VGPU_EXPORT CUresult cuFuncLoad(CUfunction function)
{
	CUresult rc = REAL(cuFuncLoad)(function);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v == NULL || overhead_grew())
		return rc;
	overhead_settle(v);
	return CUDA_ERROR_OUT_OF_MEMORY;
}
