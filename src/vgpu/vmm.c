/* Virtual memory management: a handle's memory lives while it has a reference or a mapping, and is charged as long. */
#include "vgpu/booking.h"
#include "vgpu/hooks.h"

static bool on_device(const CUmemAllocationProp *prop)
{
	return prop != NULL && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

VGPU_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
				 unsigned long long flags)
{
	struct booking b = { .v = on_device(prop) && bytes != 0 ? vgpu_get() : NULL };
	CUresult rc;

	if (b.v == NULL)
		return REAL(cuMemCreate)(out, bytes, prop, flags);
	rc = booking_open_on(&b, prop->location.id, bytes); /* the driver takes only whole granules */
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMemCreate)(out, bytes, prop, flags);
	if (rc != CUDA_SUCCESS) {
		booking_cancel(&b);
		return rc;
	}
	b.record->kind = TRACK_HANDLE;
	b.record->key = *out;
	b.record->bytes = bytes;
	b.record->refs = 1;
	track_put(&b.v->track, b.record);
	return rc;
}

/* Changes a handle's counts; what has neither reference nor mapping left is returned. */
static void count(struct vgpu *v, CUmemGenericAllocationHandle handle, int refs, int mappings)
{
	struct record *r = track_hold(&v->track, TRACK_HANDLE, handle);
	bool gone;

	if (r == NULL)
		return; /* imported, or not device memory: no charge of ours */
	if (refs > 0 || r->refs > 0)
		r->refs += (unsigned)refs;
	if (mappings > 0 || r->mappings > 0)
		r->mappings += (unsigned)mappings;
	gone = r->refs == 0 && r->mappings == 0;
	track_release(&v->track, TRACK_HANDLE, handle);
	if (!gone)
		return;
	r = track_take(&v->track, TRACK_HANDLE, handle);
	if (r == NULL)
		return;
	vgpu_uncharge(v, &v->cards[r->card], r->bytes);
	track_free(&v->track, r);
}

VGPU_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult rc = REAL(cuMemRelease)(handle);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL)
		count(v, handle, -1, 0);
	return rc;
}

VGPU_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *ptr)
{
	CUresult rc = REAL(cuMemRetainAllocationHandle)(out, ptr);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL)
		count(v, *out, 1, 0);
	return rc;
}

/* Another handle of memory that its owner pays for; or one more reference of our own. */
VGPU_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
						    CUmemAllocationHandleType type)
{
	CUresult rc = REAL(cuMemImportFromShareableHandle)(out, os_handle, type);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL)
		count(v, *out, 1, 0);
	return rc;
}

VGPU_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
			      unsigned long long flags)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL ? track_new(&v->track) : NULL;
	CUresult rc;

	if (v != NULL && r == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = REAL(cuMemMap)(ptr, bytes, offset, handle, flags);
	if (v == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		track_free(&v->track, r);
		return rc;
	}
	r->kind = TRACK_MAPPING;
	r->key = ptr;
	r->bytes = bytes;
	r->owner = handle;
	track_put(&v->track, r);
	count(v, handle, 0, 1);
	return rc;
}

/* A range holds whole mappings, one behind the other. */
static void unmap_records(struct vgpu *v, CUdeviceptr ptr, size_t bytes)
{
	uint64_t at = ptr;

	while (at - ptr < bytes) {
		struct record *r = track_take(&v->track, TRACK_MAPPING, at);

		if (r == NULL || r->bytes == 0)
			return;
		at += r->bytes;
		count(v, r->owner, 0, -1);
		track_free(&v->track, r);
	}
}

VGPU_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	CUresult rc = REAL(cuMemUnmap)(ptr, bytes);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	/* The range stays reserved until cuMemAddressFree: no other thread's mapping can be there by now, except by a
	 * race of the program with itself. */
	if (v != NULL)
		unmap_records(v, ptr, bytes);
	return rc;
}
