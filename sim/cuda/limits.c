/* Limits of a context. Three of them stand for device memory: what is asked for beyond the default, which is part of
 * the context's overhead, is taken at once and given back when it is lowered or the context ends. */
#include "sim/cuda/context.h"

static const size_t defaults[CU_LIMITS] = {
	[CU_LIMIT_STACK_SIZE] = 1024, /* of a thread */
	[CU_LIMIT_PRINTF_FIFO_SIZE] = (size_t)1 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20,
};

void cu_limits_reset(struct CUctx_st *ctx)
{
	for (size_t i = 0; i < CU_LIMITS; i++)
		ctx->limits[i] = defaults[i];
}

/* Pages behind a limit of that value beyond its default; UINT64_MAX where no card has them. */
static uint64_t reserved(const struct CUctx_st *ctx, CUlimit limit, size_t value)
{
	const struct sim_card_info *info = cu_info(ctx->device);
	uint64_t each = limit == CU_LIMIT_STACK_SIZE ? (uint64_t)info->sms * info->threads_per_sm : 1, bytes;

	if (limit > CU_LIMIT_MALLOC_HEAP_SIZE || value <= defaults[limit])
		return 0;
	if (__builtin_mul_overflow(value - defaults[limit], each, &bytes) || bytes > info->memory_bytes)
		return UINT64_MAX;
	return (bytes + CU_PAGE_BYTES - 1) / CU_PAGE_BYTES * CU_PAGE_BYTES;
}

static CUresult set(struct CUctx_st *ctx, CUlimit limit, size_t value)
{
	uint64_t before = reserved(ctx, limit, ctx->limits[limit]), after = reserved(ctx, limit, value);

	if (after == UINT64_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult rc = after > before ? cu_charge(ctx->device, SIM_MEM_CONTEXT, after - before) : CUDA_SUCCESS;

	if (rc != CUDA_SUCCESS)
		return rc;
	if (after < before)
		cu_discharge(ctx->device, SIM_MEM_CONTEXT, before - after);
	ctx->context_bytes += after - before;
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuCtxGetLimit(size_t *out, CUlimit limit)
{
	struct CUctx_st *ctx;

	if (out == NULL || limit < 0 || limit >= CU_LIMITS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = ctx->limits[limit];
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct CUctx_st *ctx;

	if (limit < 0 || limit >= CU_LIMITS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_context(&ctx);

	return rc == CUDA_SUCCESS ? cu_leave(set(ctx, limit, value)) : rc;
}
