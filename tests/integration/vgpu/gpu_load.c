/* gpu-load KIND SYNC GRID NS[,NS...] SECONDS PROCESSES: a program that keeps a card busy. It launches kernels that take
 * the card for NS each, in turn (KIND kernel; graph: one graph of GRAPH_NODES of them at a time; thread: on the
 * thread's own stream), and waits for the card after each SYNC launches (0: never). GRID: blocks of BLOCK_THREADS. It
 * says "up", reads a line, meets with PROCESSES (virtual_time.h), and ends after SECONDS. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "abi/cuda_api.h"
#include "core/num.h"
#include "harness/kernels_ptx.h"
#include "virtual_time.h"

#define CALLS                                                                                                          \
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
	X(cuLaunchKernel)                                                                                              \
	X(cuLaunchKernel_ptsz)

static struct {
#define X(name) __typeof__(&name) name;
	CALLS
#undef X
} cuda;

enum { BLOCK_THREADS = 1024, GRAPH_NODES = 10, LENGTHS = 8 };

struct load {
	CUfunction function;
	CUstream stream;
	CUgraphExec graphs[LENGTHS];
	uint64_t ns[LENGTHS], sync, grid;
	unsigned lengths;
	bool (*launch)(struct load *l, unsigned i);
};

static bool load_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	if (handle == NULL)
		return false;
#define X(name)                                                                                                        \
	{                                                                                                              \
		void *p = dlsym(handle, #name);                                                                        \
		if (p == NULL)                                                                                         \
			return false;                                                                                  \
		memcpy(&cuda.name, &p, sizeof p);                                                                      \
	}
	CALLS
#undef X
	return true;
}

static bool launch_on(const struct load *l, unsigned i, __typeof__(&cuLaunchKernel) call, CUstream stream)
{
	uint64_t ns = l->ns[i];
	void *params[] = { &ns };

	return call(l->function, (unsigned)l->grid, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, params, NULL) == CUDA_SUCCESS;
}

static bool launch_kernel(struct load *l, unsigned i)
{
	return launch_on(l, i, cuda.cuLaunchKernel, NULL);
}

static bool launch_on_thread(struct load *l, unsigned i)
{
	return launch_on(l, i, cuda.cuLaunchKernel_ptsz, NULL);
}

static bool launch_graph(struct load *l, unsigned i)
{
	CUgraph graph;

	if (l->graphs[i] == NULL) {
		if (cuda.cuStreamBeginCapture_v2(l->stream, CU_STREAM_CAPTURE_MODE_GLOBAL) != CUDA_SUCCESS)
			return false;
		for (int node = 0; node < GRAPH_NODES; node++) {
			if (!launch_on(l, i, cuda.cuLaunchKernel, l->stream))
				return false;
		}
		if (cuda.cuStreamEndCapture(l->stream, &graph) != CUDA_SUCCESS ||
		    cuda.cuGraphInstantiateWithFlags(&l->graphs[i], graph, 0) != CUDA_SUCCESS)
			return false;
	}
	return cuda.cuGraphLaunch(l->graphs[i], l->stream) == CUDA_SUCCESS;
}

static bool parse(struct load *l, char **argv)
{
	static const struct {
		const char *name;
		bool (*launch)(struct load *l, unsigned i);
	} kinds[] = { { "kernel", launch_kernel }, { "thread", launch_on_thread }, { "graph", launch_graph } };
	char *list = argv[4];

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
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

	return load_driver() && cuda.cuInit(0) == CUDA_SUCCESS &&
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
		if (!l->launch(l, (unsigned)(count % l->lengths)))
			return false;
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
		fprintf(stderr, "usage: gpu-load kernel|thread|graph SYNC GRID NS[,NS...] SECONDS PROCESSES\n");
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
