/* vgpu_bench alloc LIVE COUNT | lookup COUNT | launch COUNT | share NANOSECONDS | start: what driver calls cost a
 * program, one line of JSON a figure:
 * {"name", "unit", "value"}. Run with and without libvgpu preloaded, on the simulated node. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/num.h"
#include "harness/kernels_ptx.h"

#define DRIVER_CALLS                                                                                                   \
	X(cuInit)                                                                                                      \
	X(cuDevicePrimaryCtxRetain)                                                                                    \
	X(cuCtxSetCurrent)                                                                                             \
	X(cuMemAlloc_v2)                                                                                               \
	X(cuMemFree_v2)                                                                                                \
	X(cuModuleLoadData)                                                                                            \
	X(cuModuleGetFunction)                                                                                         \
	X(cuCtxSynchronize)                                                                                            \
	X(cuLaunchKernel)                                                                                              \
	X(cuGetProcAddress_v2)
#include "harness/driver_calls.h"

enum { SMALL_BYTES = 512 };

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static bool start(void)
{
	CUcontext ctx;

	return driver_calls_load() == NULL && cuda.cuInit(0) == CUDA_SUCCESS &&
	       cuda.cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS && cuda.cuCtxSetCurrent(ctx) == CUDA_SUCCESS;
}

static void say(const char *name, uint64_t live, const char *unit, double value)
{
	printf("{\"name\": \"%s_%lu\", \"unit\": \"%s\", \"value\": %.2f}\n", name, (unsigned long)live, unit, value);
}

static bool alloc(uint64_t bytes, CUdeviceptr *out)
{
	return cuda.cuMemAlloc_v2(out, bytes) == CUDA_SUCCESS;
}

/* One allocation and one free, while `live` others stay. */
static bool measure_alloc(uint64_t live, uint64_t count)
{
	CUdeviceptr ptr;
	double before;

	if (!start())
		return false;
	for (uint64_t i = 1; i < live; i++) {
		if (!alloc(SMALL_BYTES, &ptr))
			return false;
	}
	for (int round = 0; round < 2; round++) { /* the first warms up */
		before = now_ns();
		for (uint64_t i = 0; i < count; i++) {
			if (!alloc(SMALL_BYTES, &ptr) || cuda.cuMemFree_v2(ptr) != CUDA_SUCCESS)
				return false;
		}
	}
	say("alloc_free_live", live, "ns", (now_ns() - before) / (double)count);
	return true;
}

static bool measure_lookup(uint64_t count)
{
	void *p = NULL;
	double before;

	if (driver_calls_load() != NULL)
		return false;
	for (int round = 0; round < 2; round++) {
		before = now_ns();
		for (uint64_t i = 0; i < count; i++)
			cuda.cuGetProcAddress_v2(i % 2 == 0 ? "cuMemAlloc" : "cuMemcpy", &p, 4000, 0, NULL);
	}
	say("lookup", 0, "ns", (now_ns() - before) / (double)count);
	return p != NULL;
}

static bool load_kernel(CUfunction *out)
{
	CUmodule module;

	return start() && cuda.cuModuleLoadData(&module, kernels_ptx) == CUDA_SUCCESS &&
	       cuda.cuModuleGetFunction(out, module, "busy_ns") == CUDA_SUCCESS;
}

static bool launch(CUfunction function, uint64_t ns)
{
	void *params[] = { &ns };

	return cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS;
}

/* Kernels of no length, in bursts that the card finishes: no share is used up by them, so that none is throttled. Both
 * the launches and what measuring them costs. */
static bool measure_launch(uint64_t count)
{
	enum { BURST = 64 };
	CUfunction function;
	double before, spent = 0;

	if (!load_kernel(&function))
		return false;
	for (uint64_t done = 0; done < count + BURST; done += BURST) { /* the first burst warms up */
		before = now_ns();
		for (int i = 0; i < BURST; i++) {
			if (!launch(function, 0))
				return false;
		}
		spent = done == 0 ? 0 : spent + now_ns() - before;
		if (cuda.cuCtxSynchronize() != CUDA_SUCCESS)
			return false;
	}
	say("launch", 0, "ns", spent / (double)((count + BURST - 1) / BURST * BURST));
	return true;
}

/* The share of the card that kernels of this length got, over two seconds after the first. */
static bool measure_share(uint64_t ns)
{
	enum { SYNC = 20 };
	double began, from = 0;
	uint64_t count = 0;
	CUfunction function;

	if (!load_kernel(&function))
		return false;
	began = now_ns();
	while (from == 0 || now_ns() < from + 2e9) {
		for (int i = 0; i < SYNC; i++) {
			if (!launch(function, ns))
				return false;
		}
		if (cuda.cuCtxSynchronize() != CUDA_SUCCESS)
			return false;
		count += SYNC;
		if (from == 0 && now_ns() > began + 1e9) {
			from = now_ns();
			count = 0;
		}
	}
	say("share", ns, "%", (double)(count * ns) * 100 / (now_ns() - from));
	return true;
}

int main(int argc, char **argv)
{
	uint64_t live, count;
	bool good;

	if (argc == 2 && strcmp(argv[1], "start") == 0) {
		good = start();
	} else if (argc == 4 && strcmp(argv[1], "alloc") == 0 && num_u64_str(argv[2], 10000000, &live) &&
		   num_u64_str(argv[3], 100000000, &count) && count > 0) {
		good = measure_alloc(live, count);
	} else if (argc == 3 && strcmp(argv[1], "lookup") == 0 && num_u64_str(argv[2], 100000000, &count) &&
		   count > 0) {
		good = measure_lookup(count);
	} else if (argc == 3 && strcmp(argv[1], "launch") == 0 && num_u64_str(argv[2], 100000000, &count) &&
		   count > 0) {
		good = measure_launch(count);
	} else if (argc == 3 && strcmp(argv[1], "share") == 0 && num_u64_str(argv[2], 1000000000, &count) &&
		   count > 0) {
		good = measure_share(count);
	} else {
		fprintf(stderr, "usage: vgpu_bench alloc LIVE COUNT | lookup COUNT | launch COUNT | share NANOSECONDS "
				"| start\n");
		return 2;
	}
	if (!good)
		fprintf(stderr, "vgpu_bench: the driver did not do its part\n");
	return good ? 0 : 1;
}
