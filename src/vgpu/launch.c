/* What starts work on a card. Without a limit each is one load, a branch and a jump to the driver's. */
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
		if (HM_LIKELY(atomic_load_explicit(&throttle_off, memory_order_relaxed)))                              \
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

LIMITED_BY(cuGraphLaunch, graph_launch, (CUgraphExec exec, CUstream stream), (exec, stream), estimate_key(exec, 0, 1),
	   stream, false)
LIMITED_BY(cuGraphLaunch_ptsz, graph_launch_ptsz, (CUgraphExec exec, CUstream stream), (exec, stream),
	   estimate_key(exec, 0, 1), stream, true)
