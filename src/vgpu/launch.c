/* What starts work on a card. Without a limit each is some loads, a branch and a jump to the driver's. */
#include "vgpu/graph.h"
#include "vgpu/hooks.h"
#include "vgpu/throttle.h"

/* An entry whose parameters are `params` and are handed on to `call` as `args`. */
#define LIMITED_BY(name, call, params, args, key, stream, per_thread)                                                  \
	static __attribute__((noinline)) CUresult limited_##name params                                                \
	{                                                                                                              \
		struct launch l;                                                                                       \
                                                                                                                       \
		throttle_before(&l, key, stream, per_thread);                                                          \
		return throttle_after(&l, call args);                                                                  \
	}                                                                                                              \
	VGPU_EXPORT CUresult name params                                                                               \
	{                                                                                                              \
		if (HM_LIKELY(throttle_is_off()))                                                                      \
			return call args;                                                                              \
		return limited_##name args;                                                                            \
	}
#define LIMITED(name, params, args, key, stream, per_thread)                                                           \
	LIMITED_BY(name, REAL(name), params, args, key, stream, per_thread)

/* 64 bits: a grid has up to 2^31 x 2^16 x 2^16 blocks; what overflows is another key, no error. */
static uint64_t product(unsigned x, unsigned y, unsigned z)
{
	return (uint64_t)x * y * z;
}

#define SHAPE                                                                                                          \
	CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,    \
		unsigned block_z, unsigned shared_bytes, CUstream stream, void **params
#define SHAPE_ARGS function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params
#define SHAPE_KEY estimate_key(function, product(grid_x, grid_y, grid_z), product(block_x, block_y, block_z))

LIMITED(cuLaunchKernel, (SHAPE, void **extra), (SHAPE_ARGS, extra), SHAPE_KEY, stream, false)
LIMITED(cuLaunchKernel_ptsz, (SHAPE, void **extra), (SHAPE_ARGS, extra), SHAPE_KEY, stream, true)
LIMITED(cuLaunchCooperativeKernel, (SHAPE), (SHAPE_ARGS), SHAPE_KEY, stream, false)
LIMITED(cuLaunchCooperativeKernel_ptsz, (SHAPE), (SHAPE_ARGS), SHAPE_KEY, stream, true)

static uint64_t config_key(const CUlaunchConfig *c, CUfunction function)
{
	if (c == NULL)
		return estimate_key(function, 0, 0); /* the driver refuses it */
	return estimate_key(function, product(c->gridDimX, c->gridDimY, c->gridDimZ),
			    product(c->blockDimX, c->blockDimY, c->blockDimZ));
}

#define CONFIG const CUlaunchConfig *config, CUfunction function, void **params, void **extra
#define CONFIG_ARGS config, function, params, extra
#define CONFIG_STREAM (config != NULL ? config->hStream : NULL)

LIMITED(cuLaunchKernelEx, (CONFIG), (CONFIG_ARGS), config_key(config, function), CONFIG_STREAM, false)
LIMITED(cuLaunchKernelEx_ptsz, (CONFIG), (CONFIG_ARGS), config_key(config, function), CONFIG_STREAM, true)

/* The oldest calls: the block's shape and the parameters were set before. */
LIMITED(cuLaunch, (CUfunction function), (function), estimate_key(function, 1, 0), NULL, false)
LIMITED(cuLaunchGrid, (CUfunction function, int width, int height), (function, width, height),
	estimate_key(function, product((unsigned)width, (unsigned)height, 1), 0), NULL, false)
LIMITED(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
	(function, width, height, stream), estimate_key(function, product((unsigned)width, (unsigned)height, 1), 0),
	stream, false)

LIMITED_BY(cuGraphLaunch, graph_launch, (CUgraphExec exec, CUstream stream), (exec, stream), estimate_key(exec, 0, 1),
	   stream, false)
LIMITED_BY(cuGraphLaunch_ptsz, graph_launch_ptsz, (CUgraphExec exec, CUstream stream), (exec, stream),
	   estimate_key(exec, 0, 1), stream, true)

/* A launch on a stream's own card, which need not be the current one. */
static void before_on_stream(struct launch *l, const CUDA_LAUNCH_PARAMS *p)
{
	CUcontext ctx;

	*l = (struct launch) { .v = NULL };
	if (REAL(cuStreamGetCtx)(p->hStream, &ctx) != CUDA_SUCCESS || REAL(cuCtxPushCurrent_v2)(ctx) != CUDA_SUCCESS)
		return; /* the driver refuses it */
	throttle_before(l,
			estimate_key(p->function, product(p->gridDimX, p->gridDimY, p->gridDimZ),
				     product(p->blockDimX, p->blockDimY, p->blockDimZ)),
			p->hStream, false);
	REAL(cuCtxPopCurrent_v2)(&ctx);
}

/* One kernel on each of several cards that may wait for each other: all pass before any starts. */
static __attribute__((noinline)) CUresult limited_multi(CUDA_LAUNCH_PARAMS *launches, unsigned count, unsigned flags)
{
	struct launch l[HM_MAX_CARDS];
	CUresult rc;

	for (unsigned i = 0; i < count; i++)
		before_on_stream(&l[i], &launches[i]);
	rc = REAL(cuLaunchCooperativeKernelMultiDevice)(launches, count, flags);
	for (unsigned i = 0; i < count; i++)
		throttle_after(&l[i], rc);
	return rc;
}

VGPU_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches, unsigned count, unsigned flags)
{
	if (HM_LIKELY(throttle_is_off()) || launches == NULL || count > HM_MAX_CARDS)
		return REAL(cuLaunchCooperativeKernelMultiDevice)(launches, count, flags);
	return limited_multi(launches, count, flags);
}
