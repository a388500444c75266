/* Memory of another interface, by a descriptor of its memory file: any file that can be mapped. It is the other's, so
 * nothing is charged. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/handles.h"
#include "sim/cuda/share.h"
#include "sim/cuda/space.h"

struct CUextMemory_st {
	int fd;
	uint64_t bytes;
};

CU_EXPORT CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	struct CUctx_st *ctx;
	struct stat st;

	if (out == NULL || desc == NULL || desc->flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
	if (desc->size == 0 || fstat(desc->handle.fd, &st) != 0 || desc->size > (uint64_t)st.st_size)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct CUextMemory_st *e = calloc(1, sizeof *e);

	if (e == NULL || !cu_handle_add(e, CU_EXTERNAL)) {
		free(e);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*e = (struct CUextMemory_st) { .fd = desc->handle.fd, .bytes = desc->size }; /* the descriptor is ours now */
	*out = e;
	return cu_leave(CUDA_SUCCESS);
}

/* What is mapped lives on after the memory object, and is freed by cuMemFree. */
CU_EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory e,
						   const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	struct CUctx_st *ctx;

	if (out == NULL || desc == NULL || desc->flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(e, CU_EXTERNAL))
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	if (desc->size == 0 || desc->size > e->bytes || desc->offset > e->bytes - desc->size ||
	    desc->offset % 4096 != 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct cu_region *r = cu_import_new(e->fd, desc->offset, desc->size, ctx, ctx->device);

	if (r == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r->import.freed_by_free = true;
	*out = r->base;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory e)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(e, CU_EXTERNAL))
		return cu_leave(CUDA_ERROR_INVALID_HANDLE);
	close(e->fd);
	cu_handle_remove(e);
	free(e);
	return cu_leave(CUDA_SUCCESS);
}
