/* gpu-load KIND SYNC GRID NS[,NS...] SECONDS PROCESSES: a program that keeps a card busy. It launches kernels that take
 * the card for NS each, in turn, and waits for the card after each SYNC launches (0: never). KIND: the driver's call
 * (cuGraphLaunch: a graph of GRAPH_NODES such kernels). GRID: blocks of BLOCK_THREADS. It says "up", reads a line,
 * meets with PROCESSES (virtual_time.h), and ends after SECONDS. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/macros.h"
#include "core/num.h"
#include "harness/kernels_ptx.h"
#include "virtual_time.h"

#define DRIVER_CALLS                                                                                                   \
	X(cuInit)                                                                                                      \
	X(cuDevicePrimaryCtxRetain)                                                                                    \
	X(cuDeviceGetAttribute)                                                                                        \
	X(cuCtxSetCurrent)                                                                                             \
	X(cuCtxSynchronize)                                                                                            \
	X(cuModuleLoadData)                                                                                            \
	X(cuModuleGetFunction)                                                                                         \
	X(cuStreamCreate)                                                                                              \
	X(cuStreamBeginCapture_v2)                                                                                     \
	X(cuStreamEndCapture)                                                                                          \
	X(cuGraphInstantiateWithFlags)                                                                                 \
	X(cuGraphLaunch)                                                                                               \
	X(cuGraphLaunch_ptsz)                                                                                          \
	X(cuLaunchKernel)                                                                                              \
	X(cuLaunchKernel_ptsz)                                                                                         \
	X(cuLaunchKernelEx)                                                                                            \
	X(cuLaunchKernelEx_ptsz)                                                                                       \
	X(cuLaunchCooperativeKernel)                                                                                   \
	X(cuLaunchCooperativeKernel_ptsz)                                                                              \
	X(cuLaunchCooperativeKernelMultiDevice)                                                                        \
	X(cuFuncSetBlockShape)                                                                                         \
	X(cuParamSetSize)                                                                                              \
	X(cuParamSetv)                                                                                                 \
	X(cuLaunch)                                                                                                    \
	X(cuLaunchGrid)                                                                                                \
	X(cuLaunchGridAsync)
#include "harness/driver_calls.h"

enum { BLOCK_THREADS = 1024, GRAPH_NODES = 10, LENGTHS = 8 };

struct load {
	CUfunction function;
	CUstream stream;
	CUgraphExec graphs[LENGTHS];
	uint64_t ns[LENGTHS], sync, grid;
	unsigned lengths;
	CUresult (*launch)(struct load *l, unsigned i);
};

static CUresult launch_on(const struct load *l, unsigned i, __typeof__(&cuLaunchKernel) call, CUstream stream)
{
	uint64_t ns = l->ns[i];
	void *params[] = { &ns };

	return call(l->function, (unsigned)l->grid, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, params, NULL);
}

static CUresult launch_kernel(struct load *l, unsigned i)
{
	return launch_on(l, i, cuda.cuLaunchKernel, NULL);
}

static CUresult launch_kernel_ptsz(struct load *l, unsigned i)
{
	return launch_on(l, i, cuda.cuLaunchKernel_ptsz, NULL);
}

static CUresult launch_config(const struct load *l, unsigned i, __typeof__(&cuLaunchKernelEx) call)
{
	uint64_t ns = l->ns[i];
	void *params[] = { &ns };
	CUlaunchConfig config = { .gridDimX = (unsigned)l->grid,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = BLOCK_THREADS,
				  .blockDimY = 1,
				  .blockDimZ = 1 };

	return call(&config, l->function, params, NULL);
}

static CUresult launch_ex(struct load *l, unsigned i)
{
	return launch_config(l, i, cuda.cuLaunchKernelEx);
}

static CUresult launch_ex_ptsz(struct load *l, unsigned i)
{
	return launch_config(l, i, cuda.cuLaunchKernelEx_ptsz);
}

static CUresult launch_at_once(const struct load *l, unsigned i, __typeof__(&cuLaunchCooperativeKernel) call)
{
	uint64_t ns = l->ns[i];
	void *params[] = { &ns };

	return call(l->function, (unsigned)l->grid, 1, 1, BLOCK_THREADS, 1, 1, 0, l->stream, params);
}

static CUresult launch_cooperative(struct load *l, unsigned i)
{
	return launch_at_once(l, i, cuda.cuLaunchCooperativeKernel);
}

static CUresult launch_cooperative_ptsz(struct load *l, unsigned i)
{
	return launch_at_once(l, i, cuda.cuLaunchCooperativeKernel_ptsz);
}

static CUresult launch_multi(struct load *l, unsigned i)
{
	uint64_t ns = l->ns[i];
	void *params[] = { &ns };
	CUDA_LAUNCH_PARAMS one = { .function = l->function,
				   .gridDimX = (unsigned)l->grid,
				   .gridDimY = 1,
				   .gridDimZ = 1,
				   .blockDimX = BLOCK_THREADS,
				   .blockDimY = 1,
				   .blockDimZ = 1,
				   .hStream = l->stream,
				   .kernelParams = params };

	return cuda.cuLaunchCooperativeKernelMultiDevice(&one, 1, 0);
}

/* The calls of CUDA 2. */
static bool set_old(struct load *l, unsigned i)
{
	return cuda.cuFuncSetBlockShape(l->function, BLOCK_THREADS, 1, 1) == CUDA_SUCCESS &&
	       cuda.cuParamSetSize(l->function, sizeof l->ns[i]) == CUDA_SUCCESS &&
	       cuda.cuParamSetv(l->function, 0, &l->ns[i], sizeof l->ns[i]) == CUDA_SUCCESS;
}

static CUresult launch_old(struct load *l, unsigned i)
{
	return set_old(l, i) ? cuda.cuLaunch(l->function) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch_old_grid(struct load *l, unsigned i)
{
	return set_old(l, i) ? cuda.cuLaunchGrid(l->function, (int)l->grid, 1) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch_old_async(struct load *l, unsigned i)
{
	return set_old(l, i) ? cuda.cuLaunchGridAsync(l->function, (int)l->grid, 1, l->stream)
			     : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make_graph(struct load *l, unsigned i)
{
	CUgraph graph;
	CUresult rc = cuda.cuStreamBeginCapture_v2(l->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);

	for (int node = 0; node < GRAPH_NODES && rc == CUDA_SUCCESS; node++)
		rc = launch_on(l, i, cuda.cuLaunchKernel, l->stream);
	if (rc == CUDA_SUCCESS)
		rc = cuda.cuStreamEndCapture(l->stream, &graph);
	return rc == CUDA_SUCCESS ? cuda.cuGraphInstantiateWithFlags(&l->graphs[i], graph, 0) : rc;
}

static CUresult launch_graph_by(struct load *l, unsigned i, __typeof__(&cuGraphLaunch) call)
{
	CUresult rc = l->graphs[i] == NULL ? make_graph(l, i) : CUDA_SUCCESS;

	return rc == CUDA_SUCCESS ? call(l->graphs[i], l->stream) : rc;
}

static CUresult launch_graph(struct load *l, unsigned i)
{
	return launch_graph_by(l, i, cuda.cuGraphLaunch);
}

static CUresult launch_graph_ptsz(struct load *l, unsigned i)
{
	return launch_graph_by(l, i, cuda.cuGraphLaunch_ptsz);
}

static const struct {
	const char *name;
	CUresult (*launch)(struct load *l, unsigned i);
} kinds[] = {
	{ "cuLaunchKernel", launch_kernel },
	{ "cuLaunchKernel_ptsz", launch_kernel_ptsz },
	{ "cuLaunchKernelEx", launch_ex },
	{ "cuLaunchKernelEx_ptsz", launch_ex_ptsz },
	{ "cuLaunchCooperativeKernel", launch_cooperative },
	{ "cuLaunchCooperativeKernel_ptsz", launch_cooperative_ptsz },
	{ "cuLaunchCooperativeKernelMultiDevice", launch_multi },
	{ "cuLaunch", launch_old },
	{ "cuLaunchGrid", launch_old_grid },
	{ "cuLaunchGridAsync", launch_old_async },
	{ "cuGraphLaunch", launch_graph },
	{ "cuGraphLaunch_ptsz", launch_graph_ptsz },
};

static bool parse(struct load *l, char **argv)
{
	char *list = argv[4];

	for (size_t i = 0; i < HM_COUNT(kinds); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0)
			l->launch = kinds[i].launch;
	}
	for (char *p; (p = strsep(&list, ",")) != NULL;) {
		if (l->lengths == LENGTHS || !num_u64_str(p, UINT32_MAX, &l->ns[l->lengths++]))
			return false;
	}
	return l->launch != NULL && num_u64_str(argv[2], 1000000, &l->sync) &&
	       num_u64_str(argv[3], 1000000, &l->grid) && l->grid > 0;
}

/* The kernel's time is that of one wave of blocks: a card holds so many at once. */
static bool divide_by_waves(struct load *l, CUdevice device)
{
	int sms, threads;
	uint64_t at_once;

	if (cuda.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS ||
	    cuda.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device) !=
		    CUDA_SUCCESS ||
	    threads < BLOCK_THREADS)
		return false;
	at_once = (uint64_t)sms * (uint64_t)(threads / BLOCK_THREADS);
	for (unsigned i = 0; i < l->lengths; i++)
		l->ns[i] /= (l->grid + at_once - 1) / at_once;
	return true;
}

static bool start(struct load *l)
{
	CUcontext ctx;
	CUmodule module;

	return driver_calls_load() == NULL && cuda.cuInit(0) == CUDA_SUCCESS &&
	       cuda.cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS && cuda.cuCtxSetCurrent(ctx) == CUDA_SUCCESS &&
	       cuda.cuModuleLoadData(&module, kernels_ptx) == CUDA_SUCCESS &&
	       cuda.cuModuleGetFunction(&l->function, module, "busy_ns") == CUDA_SUCCESS &&
	       cuda.cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && divide_by_waves(l, 0);
}

static bool run(struct load *l, uint64_t seconds)
{
	struct timespec begin, now;
	uint64_t count = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		CUresult rc = l->launch(l, (unsigned)(count % l->lengths));

		if (rc != CUDA_SUCCESS) {
			fprintf(stderr, "gpu-load: launch: %d\n", (int)rc);
			return false;
		}
		count++;
		if (l->sync != 0 && count % l->sync == 0 && cuda.cuCtxSynchronize() != CUDA_SUCCESS)
			return false;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((uint64_t)(now.tv_sec - begin.tv_sec) < seconds);
	printf("%lu\n", (unsigned long)count);
	return true;
}

int main(int argc, char **argv)
{
	struct load l = { .lengths = 0 };
	uint64_t seconds, processes;
	char line[8];

	if (argc != 7 || !parse(&l, argv) || !num_u64_str(argv[5], 100000, &seconds) ||
	    !num_u64_str(argv[6], 100, &processes)) {
		fprintf(stderr, "usage: gpu-load KIND SYNC GRID NS[,NS...] SECONDS PROCESSES\n");
		return 2;
	}
	if (!start(&l)) {
		fprintf(stderr, "gpu-load: the driver did not do its part\n");
		return 1;
	}
	printf("up\n");
	fflush(stdout);
	if (fgets(line, sizeof line, stdin) == NULL)
		return 1;
	if (virtual_time_meet != NULL)
		virtual_time_meet((unsigned)processes + 1);
	return run(&l, seconds) ? 0 : 1;
}
