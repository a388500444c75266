/* Arrays and mipmapped arrays. How much one takes the driver says only of those without memory of their own: so an
 * array of the same description with deferred mapping is made first, asked, and destroyed. Drivers without that:
 * array_size. */
#include "vgpu/array.h"

#include "vgpu/array_size.h"
#include "vgpu/booking.h"
#include "vgpu/handle.h"
#include "vgpu/hooks.h"
#include "vgpu/owner.h"

static CUDA_ARRAY3D_DESCRIPTOR deferred(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR d = *desc;

	d.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	return d;
}

static uint64_t size_of_array(const CUDA_ARRAY3D_DESCRIPTOR *desc, CUdevice device)
{
	CUDA_ARRAY3D_DESCRIPTOR d = deferred(desc);
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	bool told;
	CUarray a;

	if (REAL(cuArray3DCreate_v2)(&a, &d) != CUDA_SUCCESS)
		return array_size(desc, 1);
	told = REAL(cuArrayGetMemoryRequirements)(&need, a, device) == CUDA_SUCCESS;
	REAL(cuArrayDestroy)(a);
	return told ? need.size : array_size(desc, 1);
}

static uint64_t size_of_mipmap(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, CUdevice device)
{
	CUDA_ARRAY3D_DESCRIPTOR d = deferred(desc);
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUmipmappedArray a;
	bool told;

	if (REAL(cuMipmappedArrayCreate)(&a, &d, levels) != CUDA_SUCCESS)
		return array_size(desc, HM_MAX(levels, 1U));
	told = REAL(cuMipmappedArrayGetMemoryRequirements)(&need, a, device) == CUDA_SUCCESS;
	REAL(cuMipmappedArrayDestroy)(a);
	return told ? need.size : array_size(desc, HM_MAX(levels, 1U));
}

/* Without memory of its own: its record is for what will be mapped into it. */
static CUresult open_unmapped(struct booking *b)
{
	b->card = NULL;
	b->charged = 0;
	b->record = track_new(&b->v->track);
	if (b->record == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->record->small = 1;
	return CUDA_SUCCESS;
}

/* b->v NULL: nothing is booked, the driver's answer stands. */
static CUresult open_array(struct booking *b, const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped, unsigned levels)
{
	const unsigned unmapped = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
	CUdevice device;
	uint64_t bytes;
	CUresult rc;

	b->v = vgpu_get();
	if (b->v == NULL)
		return CUDA_SUCCESS;
	if ((desc->Flags & unmapped) != 0)
		return open_unmapped(b);
	rc = REAL(cuCtxGetDevice)(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	bytes = mipmapped ? size_of_mipmap(desc, levels, device) : size_of_array(desc, device);
	if (bytes > REGION_MAX_BYTES) {
		b->v = NULL; /* the driver says what is wrong with it */
		return CUDA_SUCCESS;
	}
	return booking_open_on(b, device, bytes);
}

static CUresult close_array(struct booking *b, CUresult rc, const void *handle)
{
	if (b->v == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		booking_cancel(b);
		return rc;
	}
	b->record->kind = TRACK_ARRAY;
	b->record->key = (uintptr_t)handle;
	b->record->owner = owner_current(b->v);
	b->record->bytes = b->charged;
	track_put(&b->v->track, b->record);
	return rc;
}

/* One- and two-dimensional arrays, in either ABI. */
static CUresult open_flat_array(struct booking *b, size_t width, size_t height, int format, unsigned channels)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = { width, height, 0, format, channels, 0 };

	return open_array(b, &d, false, 0);
}

VGPU_EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	struct booking b = { .v = NULL };
	CUresult rc = CUDA_SUCCESS;

	if (out != NULL && d != NULL)
		rc = open_flat_array(&b, d->Width, d->Height, d->Format, d->NumChannels);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuArrayCreate_v2)(out, d);
	return close_array(&b, rc, rc == CUDA_SUCCESS ? *out : NULL);
}

VGPU_EXPORT CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	struct booking b = { .v = NULL };
	CUresult rc = CUDA_SUCCESS;

	if (out != NULL && d != NULL)
		rc = open_flat_array(&b, d->Width, d->Height, d->Format, d->NumChannels);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuArrayCreate)(out, d);
	return close_array(&b, rc, rc == CUDA_SUCCESS ? *out : NULL);
}

VGPU_EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct booking b = { .v = NULL };
	CUresult rc = CUDA_SUCCESS;

	if (out != NULL && d != NULL)
		rc = open_array(&b, d, false, 0);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuArray3DCreate_v2)(out, d);
	return close_array(&b, rc, rc == CUDA_SUCCESS ? *out : NULL);
}

VGPU_EXPORT CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	struct booking b = { .v = NULL };
	CUresult rc = CUDA_SUCCESS;

	if (out != NULL && d != NULL)
		rc = open_array(&b,
				&(CUDA_ARRAY3D_DESCRIPTOR) { d->Width, d->Height, d->Depth, d->Format, d->NumChannels,
							     d->Flags },
				false, 0);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuArray3DCreate)(out, d);
	return close_array(&b, rc, rc == CUDA_SUCCESS ? *out : NULL);
}

VGPU_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	struct booking b = { .v = NULL };
	CUresult rc = CUDA_SUCCESS;

	if (out != NULL && d != NULL)
		rc = open_array(&b, d, true, levels);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMipmappedArrayCreate)(out, d, levels);
	return close_array(&b, rc, rc == CUDA_SUCCESS ? *out : NULL);
}

/* The record goes before the driver frees, as with pointers. */
static struct record *take_array(struct vgpu *v, const void *handle)
{
	return v != NULL && handle != NULL ? track_take(&v->track, TRACK_ARRAY, (uintptr_t)handle) : NULL;
}

void array_uncharge(struct vgpu *v, struct record *r)
{
	if (r->small)
		handle_keepers_ended(v, TRACK_TILE, r);
	vgpu_uncharge(v, &v->cards[r->card], r->bytes);
	track_free(&v->track, r);
}

static CUresult destroyed(struct vgpu *v, struct record *r, CUresult rc)
{
	if (r == NULL)
		return rc;
	if (rc != CUDA_SUCCESS)
		track_put(&v->track, r);
	else
		array_uncharge(v, r);
	return rc;
}

VGPU_EXPORT CUresult cuArrayDestroy(CUarray array)
{
	struct vgpu *v = vgpu_get();
	struct record *r = take_array(v, array);

	return destroyed(v, r, REAL(cuArrayDestroy)(array));
}

VGPU_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	struct vgpu *v = vgpu_get();
	struct record *r = take_array(v, mipmap);

	return destroyed(v, r, REAL(cuMipmappedArrayDestroy)(mipmap));
}
