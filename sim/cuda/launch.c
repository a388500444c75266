#include "sim/cuda/launch.h"

#include <string.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"

/* The parameters of a launch: an array of pointers, or one buffer in which each is aligned to its size. */
static CUresult read_params(const struct ptx_entry *e, void **params, void **extra, uint64_t out[PTX_PARAMS])
{
	const char *buffer = NULL;
	size_t buffer_bytes = 0, at = 0;

	if (params != NULL && extra != NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (; extra != NULL && *extra != CU_LAUNCH_PARAM_END; extra += 2)
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			buffer_bytes = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < e->params; i++) {
		size_t bytes = e->param_bytes[i], align = HM_MIN(bytes, sizeof(uint64_t));
		const char *from;

		if (params != NULL) {
			from = params[i];
		} else {
			at = (at + align - 1) / align * align;
			from = buffer != NULL && at + bytes <= buffer_bytes ? buffer + at : NULL;
			at += bytes;
		}
		if (from == NULL)
			return CUDA_ERROR_INVALID_VALUE;
		out[i] = 0;
		memcpy(&out[i], from, align);
	}
	return CUDA_SUCCESS;
}

/* What a card refuses, whatever the kernel. */
static CUresult check_shape(unsigned device, const struct cu_launch *l)
{
	static const unsigned max_grid[3] = { 0x7fffffff, 65535, 65535 }, max_block[3] = { 1024, 1024, 64 };

	for (int i = 0; i < 3; i++)
		if (l->grid[i] == 0 || l->grid[i] > max_grid[i] || l->block[i] == 0 || l->block[i] > max_block[i])
			return CUDA_ERROR_INVALID_VALUE;
	if (l->block[0] * l->block[1] * l->block[2] > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	/* Above the default, a kernel must have been allowed more (cuFuncSetAttribute). */
	unsigned shared = HM_MAX(cu_info(device)->shared_per_block, l->function->max_dynamic_shared);

	if (l->shared_bytes > shared)
		return CUDA_ERROR_INVALID_VALUE;
	return l->cooperative && cu_kernel_waves(device, l) > 1 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
								: CUDA_SUCCESS;
}

CUresult cu_launch_fill(struct cu_launch *l, struct CUctx_st *ctx, const void *function, void **params, void **extra)
{
	l->function = cu_function_get(function);
	if (l->function == NULL ||
	    (l->function->module->ctx != NULL && !cu_context_shares(l->function->module->ctx, ctx)))
		return CUDA_ERROR_INVALID_HANDLE;
	struct cu_code *code;

	l->sms = ctx->sms;
	CUresult rc = check_shape(ctx->device, l);

	if (rc == CUDA_SUCCESS)
		rc = cu_code_in(l->function->module, cu_context_owner(ctx), &code);
	return rc == CUDA_SUCCESS ? read_params(l->function->entry, params, extra, l->params) : rc;
}

CUresult cu_launch_run(const struct cu_launch *l, const struct cu_stream_ref *s)
{
	uint64_t busy_ns = 0;
	CUresult rc = cu_kernel_run(s->ctx->device, l, &busy_ns);

	if (rc == CUDA_ERROR_ILLEGAL_ADDRESS) { /* the launch is taken, the fault shows in the calls behind it */
		s->ctx->sticky = rc;
		return CUDA_SUCCESS;
	}
	return rc == CUDA_SUCCESS ? cu_stream_submit(s, busy_ns, cu_kernel_meets(l)) : rc;
}

/* On a capturing stream a node, else work. */
static CUresult give(const struct cu_launch *l, const struct cu_stream_ref *s)
{
	struct cu_captured captured;
	CUresult rc = cu_captured_get(s, &captured);

	if (rc != CUDA_SUCCESS || captured.capture == NULL)
		return rc == CUDA_SUCCESS ? cu_launch_run(l, s) : rc;
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .ctx = s->ctx, .ctx_id = s->ctx->id, .launch = *l };
	return cu_captured_add(&captured, &work, NULL);
}

/* The shape is set, the function not looked up yet. */
static CUresult launch(struct cu_launch *l, const void *function, CUstream stream, bool per_thread, void **params,
		       void **extra)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_stream_get(ctx, stream, per_thread, &s);
	if (rc == CUDA_SUCCESS)
		rc = cu_launch_fill(l, s.ctx, function, params, extra);
	return cu_leave(rc == CUDA_SUCCESS && !l->dry ? give(l, &s) : rc);
}

#define SHAPE                                                                                                          \
	{                                                                                                              \
		.grid = { grid_x, grid_y, grid_z }, .block = { block_x, block_y, block_z },                            \
		.shared_bytes = shared_bytes                                                                           \
	}

CU_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
				  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
				  CUstream stream, void **params, void **extra)
{
	struct cu_launch l = SHAPE;

	return launch(&l, function, stream, false, params, extra);
}

CU_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
				       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
				       CUstream stream, void **params, void **extra)
{
	struct cu_launch l = SHAPE;

	return launch(&l, function, stream, true, params, extra);
}

CU_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
					     unsigned block_x, unsigned block_y, unsigned block_z,
					     unsigned shared_bytes, CUstream stream, void **params)
{
	struct cu_launch l = SHAPE;

	l.cooperative = true;
	return launch(&l, function, stream, false, params, NULL);
}

CU_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
						  unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
						  unsigned shared_bytes, CUstream stream, void **params)
{
	struct cu_launch l = SHAPE;

	l.cooperative = true;
	return launch(&l, function, stream, true, params, NULL);
}

/* The devices' parts one after the other, each on a stream of its own; what is refused is refused before any runs. */
CU_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches, unsigned count, unsigned flags)
{
	if (launches == NULL || count == 0 || count > SIM_MAX_CARDS || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < 2 * count; i++) {
		const CUDA_LAUNCH_PARAMS *p = &launches[i % count];
		struct cu_launch l = { .grid = { p->gridDimX, p->gridDimY, p->gridDimZ },
				       .block = { p->blockDimX, p->blockDimY, p->blockDimZ },
				       .shared_bytes = p->sharedMemBytes,
				       .cooperative = true,
				       .dry = i < count };

		if (p->hStream == NULL || p->hStream == CU_STREAM_LEGACY || p->hStream == CU_STREAM_PER_THREAD)
			return CUDA_ERROR_INVALID_VALUE;
		CUresult rc = launch(&l, p->function, p->hStream, false, p->kernelParams, NULL);

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return CUDA_SUCCESS;
}

/* Launch attributes (clusters, priorities) have no effect. */
static CUresult launch_config(const CUlaunchConfig *c, CUfunction function, void **params, void **extra,
			      bool per_thread)
{
	if (c == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct cu_launch l = {
		.grid = { c->gridDimX, c->gridDimY, c->gridDimZ },
		.block = { c->blockDimX, c->blockDimY, c->blockDimZ },
		.shared_bytes = c->sharedMemBytes,
	};
	return launch(&l, function, c->hStream, per_thread, params, extra);
}

CU_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	return launch_config(config, function, params, extra, false);
}

CU_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	return launch_config(config, function, params, extra, true);
}
