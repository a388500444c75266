#include "sim/cuda/context.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/array.h"
#include "sim/cuda/graph_memory.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/host_mem.h"
#include "sim/cuda/module.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/space.h"
#include "sim/cuda/stream.h"

/* The thread's stack of contexts. An entry is a pointer and the id it had: a context destroyed by another thread is
 * noticed even if its memory is in use again. */
enum { STACK_DEPTH = 64 };
struct stacked {
	struct CUctx_st *ctx;
	uint64_t id;
};
static _Thread_local struct stacked stack[STACK_DEPTH];
static _Thread_local unsigned depth;

struct link cu_contexts = { &cu_contexts, &cu_contexts };

static bool exists(const struct stacked *s)
{
	return cu_handle_is(s->ctx, CU_CONTEXT) && s->ctx->id == s->id;
}

struct CUctx_st *cu_current(void)
{
	return depth > 0 && exists(&stack[depth - 1]) ? stack[depth - 1].ctx : NULL;
}

CUresult cu_context_usable(struct CUctx_st *ctx)
{
	if (!ctx->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (ctx->sticky == CUDA_SUCCESS)
		ctx->sticky = cu_code(sim_card_state(cu.devices[ctx->device].card));
	return ctx->sticky;
}

struct CUctx_st *cu_context_owner(struct CUctx_st *ctx)
{
	return ctx->green ? &cu.devices[ctx->device].primary : ctx;
}

bool cu_context_shares(const struct CUctx_st *a, const struct CUctx_st *b)
{
	return a == b || (a->device == b->device && (a->green || a->primary) && (b->green || b->primary));
}

CUresult cu_context_get(CUcontext handle, struct CUctx_st **out)
{
	*out = handle;
	if (handle == NULL) {
		if (depth == 0)
			return CUDA_ERROR_INVALID_CONTEXT;
		*out = cu_current();
		if (*out == NULL)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else if (!cu_handle_is(handle, CU_CONTEXT)) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	return cu_context_usable(*out);
}

CUresult cu_context_open(struct CUctx_st *ctx, uint64_t bytes)
{
	static uint64_t last_id;
	struct cu_device *dev = &cu.devices[ctx->device];
	CUresult rc = cu_charge(ctx->device, SIM_MEM_CONTEXT, bytes);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!cu_handle_is(ctx, CU_CONTEXT) && !cu_handle_add(ctx, CU_CONTEXT)) {
		cu_discharge(ctx->device, SIM_MEM_CONTEXT, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (ctx->id == 0) /* a primary context keeps the one it was born with */
		ctx->id = ++last_id;
	ctx->context_bytes = bytes;
	ctx->sticky = CUDA_SUCCESS;
	ctx->last_ticket = 0;
	ctx->alive = true;
	ctx->peers = 0;
	cu_limits_reset(ctx);
	struct link *lists[] = { &ctx->blocks, &ctx->streams, &ctx->events,  &ctx->modules,
				 &ctx->hosts,  &ctx->arrays,  &ctx->mipmaps, &ctx->loaded };

	for (size_t i = 0; i < HM_COUNT(lists); i++)
		list_init(lists[i]);
	ctx->code_bytes = 0;
	link_append(&cu_contexts, &ctx->link);
	dev->contexts++;
	return CUDA_SUCCESS;
}

static void empty_device(unsigned device)
{
	cu_pools_empty(device);
	cu_graph_memory_empty(device);
}

void cu_context_close(struct CUctx_st *ctx)
{
	struct cu_device *dev = &cu.devices[ctx->device];

	ctx->alive = false;
	link_remove(&ctx->link);
	LIST_FOR_EACH (&cu_regions, it) {
		struct cu_region *r = HM_CONTAINER(it, struct cu_region, link);

		if (r->ctx == ctx)
			cu_region_free(r);
	}
	cu_streams_drop(ctx);
	cu_events_drop(ctx);
	cu_modules_drop(ctx);
	cu_code_drop(ctx);
	cu_hosts_drop(ctx);
	cu_arrays_drop(ctx);
	if (--dev->contexts == 0)
		empty_device(ctx->device);
	cu_discharge(ctx->device, SIM_MEM_CONTEXT, ctx->context_bytes);
	ctx->context_bytes = 0;
}

static CUresult push(struct CUctx_st *ctx)
{
	if (depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = (struct stacked) { ctx, ctx->id };
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice dev, unsigned api_version)
{
	struct cu_device *device;

	if (out == NULL || (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct CUctx_st *ctx = calloc(1, sizeof *ctx);

	if (ctx == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	ctx->device = (unsigned)dev;
	ctx->flags = flags;
	ctx->api_version = api_version;
	rc = depth < STACK_DEPTH ? cu_context_open(ctx, cu_info(ctx->device)->context_bytes) : CUDA_ERROR_OUT_OF_MEMORY;
	if (rc != CUDA_SUCCESS) {
		free(ctx);
		return cu_leave(rc);
	}
	*out = ctx;
	return cu_leave(push(ctx));
}

/* What cuCtxGetApiVersion answers: 3010 for a context of the CUDA 2 call, 3020 for all later ones. */
CU_EXPORT CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice dev)
{
	return create(out, flags, dev, 3010);
}

CU_EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice dev)
{
	return create(out, flags, dev, 3020);
}

/* Execution affinity needs MPS, which is not simulated. */
CU_EXPORT CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity HM_UNUSED, int affinities,
				  unsigned flags, CUdevice dev)
{
	return affinities != 0 ? CUDA_ERROR_NOT_SUPPORTED : create(out, flags, dev, 3020);
}

CU_EXPORT CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice dev)
{
	if (params != NULL && (params->numExecAffinityParams != 0 || params->cigParams != NULL))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(out, flags, dev, 3020);
}

static CUresult destroy(CUcontext ctx)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (ctx == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (!cu_handle_is(ctx, CU_CONTEXT) || ctx->primary || ctx->green)
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (cu_current() == ctx)
		depth--;
	uint64_t id = ctx->id;

	(void)cu_wait(ctx, ctx->last_ticket); /* a lost card has no work to wait for */
	if (!cu_handle_is(ctx, CU_CONTEXT) || ctx->id != id)
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT); /* another thread was faster */
	cu_context_close(ctx);
	cu_handle_remove(ctx);
	free(ctx);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxDestroy(CUcontext ctx)
{
	return destroy(ctx);
}

CU_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	return destroy(ctx);
}

/* The old pair that counts users of a context: Attach adds one to the current, Detach takes one away or destroys. */
CU_EXPORT CUresult cuCtxAttach(CUcontext *out, unsigned flags)
{
	struct CUctx_st *ctx;

	if (out == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	ctx->attached++;
	*out = ctx;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (ctx == NULL || cu_current() != ctx)
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (ctx->attached > 0) {
		ctx->attached--;
		return cu_leave(CUDA_SUCCESS);
	}
	cu_leave(CUDA_SUCCESS);
	return destroy(ctx);
}

static CUresult push_current(CUcontext ctx)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(cu_handle_is(ctx, CU_CONTEXT) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT);
}

CU_EXPORT CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return push_current(ctx);
}

CU_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	return push_current(ctx);
}

static CUresult pop_current(CUcontext *out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (depth == 0)
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (out != NULL)
		*out = stack[depth - 1].ctx;
	depth--;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxPopCurrent(CUcontext *out)
{
	return pop_current(out);
}

CU_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	return pop_current(out);
}

/* Replaces the top of the stack; NULL takes it off. */
CU_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (ctx != NULL && !cu_handle_is(ctx, CU_CONTEXT))
		return cu_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (depth > 0)
		depth--;
	return cu_leave(ctx != NULL ? push(ctx) : CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxGetCurrent(CUcontext *out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = depth > 0 ? stack[depth - 1].ctx : NULL;
	return cu_leave(CUDA_SUCCESS);
}
