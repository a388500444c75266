/* Memory of others: its owner pays. An imported pointer gets a record without a charge, so that its free finds that
 * one, not the owner's, where a driver gives both the same address. */
#include "vgpu/booking.h"
#include "vgpu/hooks.h"
#include "vgpu/owner.h"

static CUresult imported(CUresult rc, const CUdeviceptr *ptr)
{
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct record *r = v != NULL ? track_new(&v->track) : NULL;

	if (r == NULL)
		return rc;
	r->kind = TRACK_POINTER;
	r->key = *ptr;
	r->owner = owner_current(v);
	track_put(&v->track, r);
	return rc;
}

VGPU_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	return imported(REAL(cuIpcOpenMemHandle)(out, handle, flags), out);
}

VGPU_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	return imported(REAL(cuIpcOpenMemHandle_v2)(out, handle, flags), out);
}

VGPU_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL ? track_take(&v->track, TRACK_POINTER, ptr) : NULL;
	CUresult rc = REAL(cuIpcCloseMemHandle)(ptr);

	if (r == NULL)
		return rc;
	if (rc != CUDA_SUCCESS)
		track_put(&v->track, r); /* an allocation, say */
	else
		pointer_uncharge(v, r);
	return rc;
}

VGPU_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	return imported(REAL(cuMemPoolImportPointer)(out, pool, data), out);
}

VGPU_EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
						     const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	return imported(REAL(cuExternalMemoryGetMappedBuffer)(out, memory, desc), out);
}
