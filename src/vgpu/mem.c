/* cuMemAlloc and its like, and cuMemFree. */
#include "vgpu/booking.h"
#include "vgpu/hooks.h"
#include "vgpu/pool.h"
#include "vgpu/spill.h"
#include "vgpu/throttle.h"

VGPU_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
	struct booking b;
	CUresult rc = booking_open(&b, bytes);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMemAlloc_v2)(out, bytes);
	if (HM_UNLIKELY(rc == CUDA_ERROR_OUT_OF_MEMORY))
		rc = spill(&b, out, bytes);
	return booking_close(&b, rc, out, bytes);
}

VGPU_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
	struct booking b;
	CUresult rc = booking_open(&b, bytes);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (b.v != NULL)
		b.v->uses_managed = true;
	rc = REAL(cuMemAllocManaged)(out, bytes, flags);
	return booking_close(&b, rc, out, bytes);
}

VGPU_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
					unsigned element_bytes)
{
	enum { PITCH_BYTES = 512 }; /* rows begin at multiples of this on all current cards */
	uint64_t row, bytes;
	struct booking b;
	CUresult rc;

	if (__builtin_add_overflow((uint64_t)width, PITCH_BYTES - 1, &row) ||
	    __builtin_mul_overflow(row / PITCH_BYTES * PITCH_BYTES, height, &bytes))
		bytes = UINT64_MAX;
	rc = booking_open(&b, bytes);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMemAllocPitch_v2)(out, pitch, width, height, element_bytes);
	if (HM_UNLIKELY(rc == CUDA_ERROR_OUT_OF_MEMORY)) {
		rc = spill(&b, out, bytes);
		if (rc == CUDA_SUCCESS)
			*pitch = bytes / height;
	}
	return booking_close(&b, rc, out, rc == CUDA_SUCCESS ? *pitch * height : 0);
}

/* The record goes before the driver frees: its address may be another thread's the next moment. */
static struct record *take_pointer(struct vgpu *v, uint64_t ptr)
{
	return v != NULL && ptr != 0 ? track_take(&v->track, TRACK_POINTER, ptr) : NULL;
}

static CUresult freed(struct vgpu *v, struct record *r, CUresult rc)
{
	if (r == NULL)
		return rc; /* not one of ours: the driver knows it, or says so */
	if (rc != CUDA_SUCCESS)
		track_put(&v->track, r);
	else if (r->pooled)
		pool_pointer_freed(v, r);
	else
		pointer_uncharge(v, r);
	return rc;
}

VGPU_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	struct vgpu *v = vgpu_get();
	struct record *r = take_pointer(v, ptr);

	CUresult rc = freed(v, r, REAL(cuMemFree_v2)(ptr));

	throttle_settle(); /* many a program's last call but exit */
	return rc;
}

static bool captures(CUresult rc, CUstreamCaptureStatus status)
{
	return rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool stream_is_capturing(CUstream stream, bool per_thread)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult rc = per_thread ? REAL(cuStreamIsCapturing_ptsz)(stream, &status)
				 : REAL(cuStreamIsCapturing)(stream, &status);

	return captures(rc, status);
}

/* In a capture this makes a graph node and frees nothing. */
VGPU_EXPORT CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL && !stream_is_capturing(stream, false) ? take_pointer(v, ptr) : NULL;

	return freed(v, r, REAL(cuMemFreeAsync)(ptr, stream));
}

VGPU_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL && !stream_is_capturing(stream, true) ? take_pointer(v, ptr) : NULL;

	return freed(v, r, REAL(cuMemFreeAsync_ptsz)(ptr, stream));
}

/* The CUDA 2 interface cannot name memory beyond 4 GiB; no program of this century calls it. */
VGPU_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *out, unsigned bytes)
{
	return vgpu_get() != NULL ? CUDA_ERROR_NOT_SUPPORTED : REAL(cuMemAlloc)(out, bytes);
}

VGPU_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width, unsigned height,
				     unsigned element_bytes)
{
	if (vgpu_get() != NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuMemAllocPitch)(out, pitch, width, height, element_bytes);
}

VGPU_EXPORT CUresult cuMemFree(CUdeviceptr_v1 ptr)
{
	struct vgpu *v = vgpu_get();
	struct record *r = take_pointer(v, ptr);

	return freed(v, r, REAL(cuMemFree)(ptr));
}
