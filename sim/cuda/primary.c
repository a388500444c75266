/* Primary contexts: one for each device of the process, one object for ever, counted by retain and release. */
#include "sim/cuda/context.h"

CUresult cu_primary_retain(unsigned device)
{
	struct cu_device *d = &cu.devices[device];
	struct CUctx_st *ctx = &d->primary;
	CUresult rc;

	if (!ctx->alive) {
		ctx->primary = true;
		ctx->device = device;
		ctx->api_version = 3020;
		rc = cu_context_open(ctx, cu_info(device)->context_bytes);
	} else {
		rc = cu_context_usable(ctx);
	}
	if (rc == CUDA_SUCCESS)
		d->primary_refs++;
	return rc;
}

void cu_primary_release(unsigned device)
{
	struct cu_device *d = &cu.devices[device];

	if (d->primary_refs > 0 && --d->primary_refs == 0) /* a reset has taken all of them away */
		cu_context_close(&d->primary);
}

CU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	struct cu_device *device;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_primary_retain((unsigned)dev);
	if (rc == CUDA_SUCCESS)
		*out = &device->primary;
	return cu_leave(rc);
}

static CUresult release(CUdevice dev)
{
	struct cu_device *device;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (device->primary_refs == 1)
		(void)cu_wait(&device->primary, device->primary.last_ticket); /* a lost card has no work to wait for */
	if (device->primary_refs == 0)
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT);
	cu_primary_release((unsigned)dev);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return release(dev);
}

CU_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return release(dev);
}

/* Everything of the context is gone, whoever retained it. */
static CUresult reset(CUdevice dev)
{
	struct cu_device *device;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (device->primary.alive)
		(void)cu_wait(&device->primary, device->primary.last_ticket);
	if (device->primary.alive)
		cu_context_close(&device->primary);
	device->primary_refs = 0;
	device->primary.flags = 0;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return reset(dev);
}

CU_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return reset(dev);
}

/* Since CUDA 11 flags may change while the context is active. */
static CUresult set_flags(CUdevice dev, unsigned flags, bool even_active)
{
	struct cu_device *device;

	if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (device->primary.alive && !even_active)
		return cu_leave(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
	device->primary.flags = flags;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags)
{
	return set_flags(dev, flags, false);
}

CU_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
	return set_flags(dev, flags, true);
}

CU_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active)
{
	struct cu_device *device;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (flags != NULL)
		*flags = device->primary.flags;
	if (active != NULL)
		*active = device->primary.alive;
	return cu_leave(CUDA_SUCCESS);
}
