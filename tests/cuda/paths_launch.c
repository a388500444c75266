/* The compute limit, for each way to start work; and that a limit breaks nothing that programs do with launches. */
#include "check.h"
#include "fill.h"
#include "harness/kernels_ptx.h"
#include "paths.h"

enum { KERNEL_MS = 5, KERNELS = 30, AHEAD_MS = 40, PAIRS = 5 }; /* the bucket and the run-ahead are 20 ms each */

static CUfunction busy;
static cuuint64_t busy_ns = KERNEL_MS * UINT64_C(1000000);
static void *params[] = { &busy_ns, NULL };
static CUstream stream;
static CUgraphExec exec;

static void need_kernel(int card)
{
	CUmodule module;

	check_use(card);
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&busy, module, "busy_ns"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static CUlaunchConfig config_of(CUstream on)
{
	return (CUlaunchConfig) { .gridDimX = 1,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 1,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .hStream = on };
}

static CUresult plain(void)
{
	return cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}
static CUresult plain_ptsz(void)
{
	return cuLaunchKernel_ptsz(busy, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}
static CUresult ex(void)
{
	CUlaunchConfig config = config_of(stream);

	return cuLaunchKernelEx(&config, busy, params, NULL);
}
static CUresult ex_ptsz(void)
{
	CUlaunchConfig config = config_of(NULL);

	return cuLaunchKernelEx_ptsz(&config, busy, params, NULL);
}
static CUresult cooperative(void)
{
	return cuLaunchCooperativeKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, params);
}
static CUresult cooperative_ptsz(void)
{
	return cuLaunchCooperativeKernel_ptsz(busy, 1, 1, 1, 1, 1, 1, 0, NULL, params);
}
static CUresult cooperative_devices(void)
{
	CUDA_LAUNCH_PARAMS one = { busy, 1, 1, 1, 1, 1, 1, 0, stream, params };

	return cuLaunchCooperativeKernelMultiDevice(&one, 1, 0);
}
static CUresult graph(void)
{
	return cuGraphLaunch(exec, stream);
}
static CUresult graph_ptsz(void)
{
	return cuGraphLaunch_ptsz(exec, NULL);
}

/* The interface of CUDA 2; its types are nobody else's. */
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuParamSetSize(CUfunction function, unsigned bytes);
CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream on);

static void shape(void)
{
	NEED(cuFuncSetBlockShape);
	NEED(cuParamSetv);
	SUPPORTED(cuFuncSetBlockShape(busy, 1, 1, 1));
	SUPPORTED(cuParamSetSize(busy, sizeof busy_ns));
	SUPPORTED(cuParamSetv(busy, 0, &busy_ns, sizeof busy_ns));
}

static CUresult old(void)
{
	return cuLaunch(busy);
}
static CUresult old_grid(void)
{
	return cuLaunchGrid(busy, 1, 1);
}
static CUresult old_grid_async(void)
{
	return cuLaunchGridAsync(busy, 1, 1, stream);
}

static void make_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node_params = { .func = busy,
						   .gridDimX = 1,
						   .gridDimY = 1,
						   .gridDimZ = 1,
						   .blockDimX = 1,
						   .blockDimY = 1,
						   .blockDimZ = 1,
						   .kernelParams = params };
	CUgraphNode node;
	CUgraph g;

	NEED(cuGraphAddKernelNode_v2);
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddKernelNode_v2(&node, g, NULL, 0, &node_params));
	OK(cuGraphInstantiateWithFlags(&exec, g, 0));
}

/* 150 ms of the card's time, of which the share's part may pass at once: the rest has to wait. A tenth is left for what
 * a card's clock and ours differ. */
static void held(CUresult (*fire)(void), void (*before)(void))
{
	unsigned cores = check_cores();

	if (cores == 0 || cores >= 100)
		check_not_available("no compute limit is set (HAMI_CHECK_CORES)");
	need_kernel(0);
	if (before != NULL)
		before();
	SUPPORTED(fire());
	OK(cuCtxSynchronize());
	double start = check_now_ms(), wanted = (KERNELS * KERNEL_MS - AHEAD_MS) * 90.0 / cores;

	for (int i = 0; i < KERNELS; i++)
		OK(fire());
	OK(cuCtxSynchronize());
	double took = check_now_ms() - start;

	HOLDS(took >= wanted, "%d ms of work took %.0f ms; %u %% of the card would need %.0f", KERNELS * KERNEL_MS,
	      took, cores, wanted);
}

#define LAUNCH(function, symbol, fire, before)                                                                         \
	static void function(void)                                                                                     \
	{                                                                                                              \
		NEED(symbol);                                                                                          \
		held(fire, before);                                                                                    \
	}
LAUNCH(run_kernel, cuLaunchKernel, plain, NULL)
LAUNCH(run_kernel_ptsz, cuLaunchKernel_ptsz, plain_ptsz, NULL)
LAUNCH(run_ex, cuLaunchKernelEx, ex, NULL)
LAUNCH(run_ex_ptsz, cuLaunchKernelEx_ptsz, ex_ptsz, NULL)
LAUNCH(run_cooperative, cuLaunchCooperativeKernel, cooperative, NULL)
LAUNCH(run_cooperative_ptsz, cuLaunchCooperativeKernel_ptsz, cooperative_ptsz, NULL)
LAUNCH(run_devices, cuLaunchCooperativeKernelMultiDevice, cooperative_devices, NULL)
LAUNCH(run_graph, cuGraphLaunch, graph, make_graph)
LAUNCH(run_graph_ptsz, cuGraphLaunch_ptsz, graph_ptsz, make_graph)
LAUNCH(run_old, cuLaunch, old, shape)
LAUNCH(run_old_grid, cuLaunchGrid, old_grid, shape)
LAUNCH(run_old_grid_async, cuLaunchGridAsync, old_grid_async, shape)

/* A capture, of a kernel that was never launched, or whose launches have used up what the limit grants: nothing that is
 * ours may end up in it or end it. */
static void capture(CUstreamCaptureMode mode, int launched_before)
{
	CUgraphNode nodes[KERNELS + 8];
	CUdeviceptr p;
	CUgraph g;
	size_t count = HM_COUNT(nodes);

	for (int i = 0; i < launched_before; i++)
		OK(plain());
	OK(cuStreamSynchronize(stream));
	OK(cuStreamBeginCapture_v2(stream, mode));
	for (int i = 0; i < KERNELS / 3; i++)
		OK(plain());
	OK(ex());
	OK(cooperative());
	OK(cuMemAllocAsync(&p, fill_piece(), stream));
	OK(cuMemFreeAsync(p, stream));
	OK(cuStreamEndCapture(stream, &g));
	OK(cuGraphGetNodes(g, nodes, &count));
	HOLDS(count == KERNELS / 3 + 4, "%d calls made %zu nodes", KERNELS / 3 + 4, count);
	OK(cuGraphInstantiateWithFlags(&exec, g, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
}

static void run_capture(void)
{
	NEED(cuMemAllocAsync);
	need_kernel(0);
	busy_ns = 1000000;
	capture(CU_STREAM_CAPTURE_MODE_GLOBAL, 0);
	capture(CU_STREAM_CAPTURE_MODE_GLOBAL, 10);
	capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 20);
	capture(CU_STREAM_CAPTURE_MODE_RELAXED, 30);
}

/* Two cards whose kernels wait for each other's by events, as collectives do: launches go first to the one, then to the
 * other card, so a launch that waited for the other card's work would wait for ever. The runner's time limit is the
 * check. */
static void run_two_cards(void)
{
	CUfunction function[2];
	CUcontext ctx[2];
	CUstream on[2];
	CUevent there[2];

	busy_ns = 1000000;
	for (int i = 0; i < 2; i++) {
		ctx[i] = check_use(i);
		need_kernel(i);
		function[i] = busy;
		on[i] = stream;
		OK(cuEventCreate(&there[i], CU_EVENT_DISABLE_TIMING));
	}
	for (int round = 0; round < 40; round++)
		for (int i = 0; i < 2; i++) {
			int first = (round + i) % 2;

			OK(cuCtxSetCurrent(ctx[first]));
			if (round > 0 || i > 0)
				OK(cuStreamWaitEvent(on[first], there[1 - first], 0));
			OK(cuLaunchKernel(function[first], 1, 1, 1, 1, 1, 1, 0, on[first], params, NULL));
			OK(cuEventRecord(there[first], on[first]));
		}
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(ctx[i]));
		OK(cuCtxSynchronize());
	}
}

/* A kernel of a collective may wait on its card for a partner that is launched after it. So while one runs for long,
 * the launch of another one must come through soon, on another card and on another stream of the same. */
static void partner(int card)
{
	need_kernel(0);
	busy_ns = UINT64_C(3000000000);
	OK(plain());
	if (card != 0)
		need_kernel(card);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	busy_ns = 1000000;
	double start = check_now_ms();

	OK(plain());
	double took = check_now_ms() - start;

	HOLDS(took < 1500, "the partner's launch on card %d waited %.0f ms", card, took);
}

static void run_partner_on_other_card(void)
{
	check_use(1);
	partner(1);
}
static void run_partner_on_same_card(void)
{
	partner(0);
}

/* Two kernels, one a card, that spin until both run, as those of a collective do, one pair after the other: under a
 * limit as without, each pair meets. The words they count in are the host's. */
static void run_collective(void)
{
	unsigned *count;
	CUfunction meet[2];
	CUcontext ctx[2];
	CUstream on[2];
	cuuint64_t ns = 1000000;

	for (int i = 0; i < 2; i++) {
		CUmodule module;

		ctx[i] = check_use(i);
		OK(cuModuleLoadData(&module, kernels_ptx));
		OK(cuModuleGetFunction(&meet[i], module, "meet"));
		OK(cuStreamCreate(&on[i], CU_STREAM_NON_BLOCKING));
	}
	OK(cuMemHostAlloc((void **)&count, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	for (size_t i = 0; i < PAIRS; i++)
		count[i] = 0;
	for (size_t pair = 0; pair < PAIRS; pair++)
		for (int i = 0; i < 2; i++) {
			CUdeviceptr at;

			OK(cuCtxSetCurrent(ctx[i]));
			OK(cuMemHostGetDevicePointer_v2(&at, &count[pair], 0));
			OK(cuLaunchKernel(meet[i], 1, 1, 1, 1, 1, 1, 0, on[i], (void *[]) { &at, &ns }, NULL));
		}
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(ctx[i]));
		OK(cuCtxSynchronize());
	}
}

/* Keeps the card at work for 0.4 s. */
static void role_busy(int sock)
{
	need_kernel(0);
	busy_ns = 400000000;
	OK(plain());
	OK(cuCtxSynchronize());
	child_nod(sock);
	child_wait(sock);
}

const struct path paths_launch[] = {
	{ "launch-kernel", run_kernel, BARE_BREAKS },
	{ "launch-kernel-per-thread", run_kernel_ptsz, BARE_BREAKS },
	{ "launch-kernel-ex", run_ex, BARE_BREAKS },
	{ "launch-kernel-ex-per-thread", run_ex_ptsz, BARE_BREAKS },
	{ "launch-cooperative", run_cooperative, BARE_BREAKS },
	{ "launch-cooperative-per-thread", run_cooperative_ptsz, BARE_BREAKS },
	{ "launch-cooperative-devices", run_devices, BARE_BREAKS },
	{ "launch-graph", run_graph, BARE_BREAKS },
	{ "launch-graph-per-thread", run_graph_ptsz, BARE_BREAKS },
	{ "launch-cuda2", run_old, BARE_BREAKS },
	{ "launch-cuda2-grid", run_old_grid, BARE_BREAKS },
	{ "launch-cuda2-grid-async", run_old_grid_async, BARE_BREAKS },
	{ "capture", run_capture, BARE_PASSES },
	{ "partner-on-another-card", run_partner_on_other_card, BARE_PASSES },
	{ "partner-on-the-same-card", run_partner_on_same_card, BARE_PASSES },
	{ "collective", run_collective, BARE_PASSES },
	{ "two-cards-wait-for-each-other", run_two_cards, BARE_PASSES },
	{ 0 },
};
const struct role roles_launch[] = {
	{ "busy", role_busy },
	{ 0 },
};
