/* Context life: what a context holds is freed with it, and so is its charge. Process life: cuInit attaches. */
#include "vgpu/booking.h"
#include "vgpu/hooks.h"
#include "vgpu/pool.h"

VGPU_EXPORT CUresult cuInit(unsigned flags)
{
	CUresult rc = REAL(cuInit)(flags);

	if (rc == CUDA_SUCCESS)
		vgpu_get(); /* from now on the node agent sees us in the region */
	return rc;
}

struct purge {
	struct vgpu *v;
	uint64_t ctx;
};

static void purge_one(const struct record *seen, void *arg)
{
	struct purge *p = arg;
	struct record *r;

	if (seen->kind != TRACK_POINTER || seen->pooled || seen->owner != p->ctx)
		return;
	r = track_take(&p->v->track, TRACK_POINTER, seen->key);
	if (r == NULL)
		return;
	if (r->owner == p->ctx)
		pointer_uncharge(p->v, r);
	else
		track_put(&p->v->track, r); /* its address is another context's by now */
}

static void purge_context(uint64_t ctx)
{
	struct purge p = { vgpu_get(), ctx };

	if (p.v == NULL || ctx == 0)
		return;
	track_each(&p.v->track, purge_one, &p);
	pools_refresh(p.v);
}

VGPU_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult rc = REAL(cuCtxDestroy_v2)(ctx);

	if (rc == CUDA_SUCCESS)
		purge_context((uintptr_t)ctx);
	return rc;
}

VGPU_EXPORT CUresult cuCtxDestroy(CUcontext ctx)
{
	CUresult rc = REAL(cuCtxDestroy)(ctx);

	if (rc == CUDA_SUCCESS)
		purge_context((uintptr_t)ctx);
	return rc;
}

/* Drops one of several uses; only the last one ends the context. */
VGPU_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
	CUresult rc = REAL(cuCtxDetach)(ctx);
	unsigned version;

	if (rc == CUDA_SUCCESS && REAL(cuCtxGetApiVersion)(ctx, &version) != CUDA_SUCCESS)
		purge_context((uintptr_t)ctx);
	return rc;
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	CUresult rc = REAL(cuDevicePrimaryCtxRetain)(out, device);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v != NULL && device >= 0 && device < VGPU_DEVICES)
		v->primary[device] = (uintptr_t)*out;
	return rc;
}

static void purge_primary(CUdevice device)
{
	struct vgpu *v = vgpu_get();

	if (v != NULL && device >= 0 && device < VGPU_DEVICES)
		purge_context(v->primary[device]);
}

static CUresult reset(CUresult rc, CUdevice device)
{
	if (rc == CUDA_SUCCESS)
		purge_primary(device);
	return rc;
}

/* The last release ends the context. */
static CUresult released(CUresult rc, CUdevice device)
{
	unsigned flags;
	int active = 1;

	if (rc == CUDA_SUCCESS && REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active)
		purge_primary(device);
	return rc;
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return reset(REAL(cuDevicePrimaryCtxReset_v2)(device), device);
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return reset(REAL(cuDevicePrimaryCtxReset)(device), device);
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return released(REAL(cuDevicePrimaryCtxRelease_v2)(device), device);
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return released(REAL(cuDevicePrimaryCtxRelease)(device), device);
}
