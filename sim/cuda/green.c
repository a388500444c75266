/* Green contexts: a part of a device's SMs with streams of its own. What is allocated in one belongs to the device's
 * primary context, which it keeps alive. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/context.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/stream.h"

/* What one costs on the card beside the primary context: an assumption, no source says. */
#define GREEN_BYTES ((uint64_t)8 << 20)

struct CUdevResourceDesc_st {
	unsigned device, sms;
};

struct CUgreenCtx_st {
	uint64_t id; /* first, so that it and its context have two addresses */
	struct CUctx_st ctx;
};

/* What makes a resource ours, in the part that programs do not read. */
struct seal {
	uint64_t magic;
	uint32_t device;
	bool split; /* cannot be split again */
};
#define SEAL_MAGIC 0x534d534d494d4148ULL
_Static_assert(sizeof(struct seal) <= sizeof((CUdevResource *)0)->_internal_padding, "fits");

/* SMs come in twos, and from Hopper on in eights, unless clusters do not matter. */
static unsigned step_of(unsigned device, bool fine)
{
	return cu_info(device)->cc_major >= 9 && !fine ? 8 : 2;
}

static void fill(CUdevResource *out, unsigned device, unsigned sms, bool split)
{
	struct seal seal = { .magic = SEAL_MAGIC, .device = device, .split = split };

	memset(out, 0, sizeof *out);
	if (sms == 0)
		return; /* CU_DEV_RESOURCE_TYPE_INVALID */
	out->type = CU_DEV_RESOURCE_TYPE_SM;
	out->sm.smCount = sms;
	out->sm.minSmPartitionSize = out->sm.smCoscheduledAlignment = step_of(device, false);
	memcpy(out->_internal_padding, &seal, sizeof seal);
}

static bool unseal(const CUdevResource *r, struct seal *out)
{
	memcpy(out, r->_internal_padding, sizeof *out);
	return r->type == CU_DEV_RESOURCE_TYPE_SM && out->magic == SEAL_MAGIC && out->device < cu.count &&
	       r->sm.smCount > 0 && r->sm.smCount <= cu_info(out->device)->sms;
}

static unsigned sms_of(const struct CUctx_st *ctx)
{
	return ctx->sms > 0 ? ctx->sms : cu_info(ctx->device)->sms;
}

CU_EXPORT CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *out, CUdevResourceType type)
{
	struct cu_device *device;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return cu_leave(CUDA_ERROR_INVALID_RESOURCE_TYPE);
	fill(out, (unsigned)dev, cu_info((unsigned)dev)->sms, false);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *out, CUdevResourceType type)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = out == NULL ? CUDA_ERROR_INVALID_VALUE : cu_context_get(handle, &ctx);
	if (rc == CUDA_SUCCESS && type != CU_DEV_RESOURCE_TYPE_SM)
		rc = CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (rc == CUDA_SUCCESS)
		fill(out, ctx->device, sms_of(ctx), false);
	return cu_leave(rc);
}

/* Takes the lock and looks a green context up. */
static CUresult enter_green(CUgreenCtx g)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(g, CU_GREEN) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_CONTEXT);
}

CU_EXPORT CUresult cuGreenCtxGetDevResource(CUgreenCtx g, CUdevResource *out, CUdevResourceType type)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_green(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return cu_leave(CUDA_ERROR_INVALID_RESOURCE_TYPE);
	fill(out, g->ctx.device, g->ctx.sms, false);
	return cu_leave(CUDA_SUCCESS);
}

/* Equal groups of at least min_sms; without a place for them it says how many there could be. */
CU_EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *out, unsigned *groups, const CUdevResource *input,
					       CUdevResource *rest, unsigned flags, unsigned min_sms)
{
	struct seal seal;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (groups == NULL || input == NULL || flags > 3)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (!unseal(input, &seal))
		return cu_leave(CUDA_ERROR_INVALID_RESOURCE_TYPE);
	if (seal.split || min_sms > input->sm.smCount)
		return cu_leave(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	unsigned step = step_of(seal.device, (flags & 1) != 0), sms = input->sm.smCount;
	unsigned size = (HM_MAX(min_sms, 1U) + step - 1) / step * step, most = sms / size;
	unsigned made = out != NULL ? HM_MIN(*groups, most) : most;

	for (unsigned i = 0; out != NULL && i < made; i++)
		fill(&out[i], seal.device, size, true);
	if (rest != NULL)
		fill(rest, seal.device, sms - made * size, true);
	*groups = made;
	return cu_leave(CUDA_SUCCESS);
}

/* The interface has no call that frees a description: they stay. */
CU_EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources, unsigned count)
{
	struct seal seal, first = { .magic = 0 };
	unsigned sms = 0;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || resources == NULL || count == 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++) {
		if (!unseal(&resources[i], &seal))
			return cu_leave(CUDA_ERROR_INVALID_RESOURCE_TYPE);
		if (i == 0)
			first = seal;
		sms += resources[i].sm.smCount;
		if (seal.device != first.device || sms > cu_info(seal.device)->sms)
			return cu_leave(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	}
	struct CUdevResourceDesc_st *d = calloc(1, sizeof *d);

	if (d == NULL || !cu_handle_add(d, CU_RESOURCES)) {
		free(d);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*d = (struct CUdevResourceDesc_st) { .device = first.device, .sms = sms };
	*out = d;
	return cu_leave(CUDA_SUCCESS);
}

static CUresult create(CUgreenCtx *out, const struct CUdevResourceDesc_st *d)
{
	static uint64_t last_id;
	struct CUgreenCtx_st *g = calloc(1, sizeof *g);
	CUresult rc = g != NULL ? cu_primary_retain(d->device) : CUDA_ERROR_OUT_OF_MEMORY;

	if (rc != CUDA_SUCCESS) {
		free(g);
		return rc;
	}
	g->id = ++last_id;
	g->ctx = (struct CUctx_st) { .device = d->device, .sms = d->sms, .green = true, .api_version = 3020 };
	rc = cu_context_open(&g->ctx, GREEN_BYTES);
	if (rc == CUDA_SUCCESS && !cu_handle_add(g, CU_GREEN)) {
		cu_context_close(&g->ctx);
		cu_handle_remove(&g->ctx);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		cu_primary_release(d->device);
		free(g);
		return rc;
	}
	*out = g;
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice dev, unsigned flags)
{
	struct cu_device *device;

	if (out == NULL || flags > CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(desc, CU_RESOURCES) || desc->device != (unsigned)dev)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(create(out, desc));
}

CU_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx g)
{
	CUresult rc = enter_green(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	(void)cu_wait(&g->ctx, g->ctx.last_ticket); /* a lost card has no work to wait for */
	if (!cu_handle_is(g, CU_GREEN))
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT); /* another thread was faster */
	unsigned device = g->ctx.device;

	cu_context_close(&g->ctx);
	cu_handle_remove(&g->ctx);
	cu_handle_remove(g);
	free(g);
	cu_primary_release(device);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx g)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_green(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = &g->ctx;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGreenCtxGetId(CUgreenCtx g, unsigned long long *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_green(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = g->id;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx g, unsigned flags, int priority)
{
	if (out == NULL || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_green(g);

	return rc == CUDA_SUCCESS ? cu_leave(cu_stream_new(&g->ctx, flags, priority, out)) : rc;
}

CU_EXPORT CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *out)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_stream_get(ctx, stream, false, &s);
	if (rc == CUDA_SUCCESS)
		*out = s.ctx->green ? HM_CONTAINER(s.ctx, struct CUgreenCtx_st, ctx) : NULL;
	return cu_leave(rc);
}
