/* Context life: what a context holds is freed with it, and so is its charge. Process life: cuInit attaches. */
#include "vgpu/context.h"

#include "vgpu/array.h"
#include "vgpu/booking.h"
#include "vgpu/hooks.h"
#include "vgpu/overhead.h"
#include "vgpu/pool.h"
#include "vgpu/throttle.h"

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

static bool belongs_to_contexts(const struct record *r)
{
	return (r->kind == TRACK_POINTER && !r->pooled) || r->kind == TRACK_ARRAY;
}

static void purge_one(const struct record *seen, void *arg)
{
	struct purge *p = arg;
	struct record *r;

	if (!belongs_to_contexts(seen) || seen->owner != p->ctx)
		return;
	/* An import may have had the same address. */
	while ((r = track_take(&p->v->track, seen->kind, seen->key)) != NULL && r->owner == p->ctx) {
		if (r->kind == TRACK_ARRAY)
			array_uncharge(p->v, r);
		else
			pointer_uncharge(p->v, r);
	}
	if (r != NULL)
		track_put(&p->v->track, r); /* the address is another context's by now */
}

static void purge_context(uint64_t ctx)
{
	struct purge p = { vgpu_get(), ctx };

	if (p.v == NULL || ctx == 0)
		return;
	throttle_forget(p.v, ctx);
	track_each(&p.v->track, purge_one, &p);
	pools_refresh(p.v);
	overhead_settle(p.v);
}

/* What a context takes is known once it is there: one that does not fit is ended again. */
static CUresult created(CUresult rc, CUcontext *out, struct overhead *o)
{
	if (rc != CUDA_SUCCESS || overhead_after(o))
		return rc;
	cuCtxDestroy_v2(*out);
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device)
{
	struct overhead o;

	overhead_before(&o, device);
	return created(REAL(cuCtxCreate)(out, flags, device), out, &o);
}

VGPU_EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
	struct overhead o;

	overhead_before(&o, device);
	return created(REAL(cuCtxCreate_v2)(out, flags, device), out, &o);
}

VGPU_EXPORT CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int affinities, unsigned flags,
				    CUdevice device)
{
	struct overhead o;

	overhead_before(&o, device);
	return created(REAL(cuCtxCreate_v3)(out, affinity, affinities, flags, device), out, &o);
}

VGPU_EXPORT CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	struct overhead o;

	overhead_before(&o, device);
	return created(REAL(cuCtxCreate_v4)(out, params, flags, device), out, &o);
}

VGPU_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult rc;

	throttle_settle();
	rc = REAL(cuCtxDestroy_v2)(ctx);
	if (rc == CUDA_SUCCESS)
		purge_context((uintptr_t)ctx);
	return rc;
}

VGPU_EXPORT CUresult cuCtxDestroy(CUcontext ctx)
{
	CUresult rc;

	throttle_settle();
	rc = REAL(cuCtxDestroy)(ctx);
	if (rc == CUDA_SUCCESS)
		purge_context((uintptr_t)ctx);
	return rc;
}

/* Drops one of several uses; only the last one ends the context. */
VGPU_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
	unsigned version;
	CUresult rc;

	throttle_settle();
	rc = REAL(cuCtxDetach)(ctx);
	if (rc == CUDA_SUCCESS && REAL(cuCtxGetApiVersion)(ctx, &version) != CUDA_SUCCESS)
		purge_context((uintptr_t)ctx);
	return rc;
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	struct overhead o = { .v = NULL };
	struct vgpu *v;
	unsigned flags;
	int active = 0;
	CUresult rc;

	if (REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active)
		overhead_before(&o, device);
	rc = REAL(cuDevicePrimaryCtxRetain)(out, device);
	v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	if (v != NULL && device >= 0 && device < VGPU_DEVICES)
		v->primary[device] = (uintptr_t)*out;
	/* Where nothing may be allocated it is let in all the same: without one a program cannot even ask. */
	if (rc != CUDA_SUCCESS || o.card == NULL || overhead_after(&o))
		return rc;
	cuDevicePrimaryCtxRelease_v2(device);
	*out = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Stack, buffers and heap lie on the card. What does not fit is set back. */
VGPU_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	size_t before = 0;
	bool known = REAL(cuCtxGetLimit)(&before, limit) == CUDA_SUCCESS;
	CUresult rc = REAL(cuCtxSetLimit)(limit, value);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v == NULL || limit > CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT)
		return rc;
	overhead_expect(v); /* a driver may wait for the next launch */
	if (overhead_grew())
		return rc;
	if (known)
		REAL(cuCtxSetLimit)(limit, before);
	overhead_settle(v);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Once: its address may be another context's from now on. */
static void purge_primary(CUdevice device)
{
	struct vgpu *v = vgpu_get();

	if (v != NULL && device >= 0 && device < VGPU_DEVICES)
		purge_context(atomic_exchange(&v->primary[device], 0));
}

static CUresult reset(CUresult rc, CUdevice device)
{
	if (rc == CUDA_SUCCESS)
		purge_primary(device);
	return rc;
}

static bool has_ended(CUdevice device)
{
	unsigned flags;
	int active = 1;

	return REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active;
}

void contexts_primary_ended(struct vgpu *v)
{
	for (CUdevice i = 0; i < VGPU_DEVICES; i++) {
		if (v->primary[i] != 0 && has_ended(i))
			purge_primary(i);
	}
}

/* The last release ends the context. */
static CUresult released(CUresult rc, CUdevice device)
{
	if (rc == CUDA_SUCCESS && has_ended(device))
		purge_primary(device);
	return rc;
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	throttle_settle();
	return reset(REAL(cuDevicePrimaryCtxReset_v2)(device), device);
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	throttle_settle();
	return reset(REAL(cuDevicePrimaryCtxReset)(device), device);
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	throttle_settle();
	return released(REAL(cuDevicePrimaryCtxRelease_v2)(device), device);
}

VGPU_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	throttle_settle();
	return released(REAL(cuDevicePrimaryCtxRelease)(device), device);
}
