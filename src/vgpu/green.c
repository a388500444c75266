/* A green context is a part of a card's processors. What is allocated while its CUcontext (cuCtxFromGreenCtx) is
 * current belongs to the device's primary context, which it keeps alive: filed is which device that is (owner.h). */
#include "vgpu/context.h"
#include "vgpu/hooks.h"
#include "vgpu/overhead.h"
#include "vgpu/throttle.h"

/* Retained and released: the green context holds it already. */
static void learn_primary(struct vgpu *v, CUdevice device)
{
	CUcontext ctx;

	if (v->primary[device] != 0 || REAL(cuDevicePrimaryCtxRetain)(&ctx, device) != CUDA_SUCCESS)
		return;
	v->primary[device] = (uintptr_t)ctx;
	REAL(cuDevicePrimaryCtxRelease_v2)(device);
}

/* False: no memory for it. A green context without a CUcontext is never current. */
static bool file_green(struct vgpu *v, CUgreenCtx green, CUdevice device)
{
	struct record *r;
	CUcontext ctx;

	if (v == NULL || device < 0 || device >= VGPU_DEVICES || REAL(cuCtxFromGreenCtx)(&ctx, green) != CUDA_SUCCESS)
		return true;
	learn_primary(v, device);
	r = track_new(&v->track);
	if (r == NULL)
		return false;
	r->kind = TRACK_GREEN;
	r->key = (uintptr_t)ctx;
	r->owner = (uint64_t)device;
	track_put(&v->track, r);
	v->greens++;
	return true;
}

VGPU_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
	struct overhead o;
	CUresult rc;

	overhead_before(&o, device);
	rc = REAL(cuGreenCtxCreate)(out, desc, device, flags);
	if (rc != CUDA_SUCCESS || (file_green(o.v, *out, device) && overhead_after(&o)))
		return rc;
	cuGreenCtxDestroy(*out);
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Its record goes before the driver frees: the address may be another context's the next moment. */
VGPU_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	struct vgpu *v = vgpu_get();
	struct record *r = NULL;
	CUcontext ctx = NULL;
	CUresult rc;

	if (v != NULL && v->greens != 0 && REAL(cuCtxFromGreenCtx)(&ctx, green) == CUDA_SUCCESS)
		r = track_take(&v->track, TRACK_GREEN, (uintptr_t)ctx);
	rc = REAL(cuGreenCtxDestroy)(green);
	if (v == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		if (r != NULL)
			track_put(&v->track, r);
		return rc;
	}
	if (r != NULL) {
		v->greens--;
		track_free(&v->track, r);
		throttle_forget(v, (uintptr_t)ctx);
	}
	contexts_primary_ended(v);
	overhead_settle(v);
	return rc;
}
