#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"
#include "harness/temp.h"
#include "sim/lib/sim_client.h"

static CUfunction function(CUmodule module, const char *name)
{
	CUfunction f = NULL;

	assert_cuda(cuModuleGetFunction(&f, module, name));
	return f;
}

static CUmodule load(void)
{
	CUmodule module = NULL;

	assert_cuda(cuModuleLoadData(&module, kernels_ptx));
	return module;
}

static CUresult busy(CUfunction f, unsigned blocks, unsigned threads, uint64_t ns, CUstream stream)
{
	void *params[] = { &ns };

	return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

/* Waves of as many blocks as fit: 40 SMs, 1024 threads and 16 blocks each. */
static void waves(void **state HM_UNUSED)
{
	static const struct {
		unsigned blocks, threads, waves;
	} cases[] = {
		{ 1, 1024, 1 }, { 40, 1024, 1 }, { 41, 1024, 2 }, { 80, 1024, 2 }, { 81, 1024, 3 },
		{ 40, 513, 1 }, { 80, 512, 1 },  { 81, 512, 2 },  { 640, 64, 1 },  { 641, 64, 2 },
		{ 640, 1, 1 },  { 641, 1, 2 },   { 400, 100, 2 }, { 320, 100, 1 }, /* 4 warps: 8 blocks an SM */
	};
	CUmodule module = load();
	CUfunction f = function(module, "busy_ns");

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint64_t start = sim_now_ns();

		assert_cuda(busy(f, cases[i].blocks, cases[i].threads, 1000003, NULL));
		assert_cuda(cuCtxSynchronize());
		assert_int_equal(sim_now_ns() - start, cases[i].waves * 1000003ULL);
	}
	assert_cuda(cuModuleUnload(module));
}

static void streams_and_events(void **state HM_UNUSED)
{
	CUmodule module = load();
	CUfunction f = function(module, "busy_ns");
	CUstream a, b;
	CUevent start, middle, end, untimed;
	float ms = -1;

	assert_cuda(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreateWithPriority(&b, 0, -3));
	assert_cuda(cuEventCreate(&start, 0));
	assert_cuda(cuEventCreate(&middle, 0));
	assert_cuda(cuEventCreate(&end, 0));
	assert_cuda(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	assert_cuda(cuEventQuery(end)); /* never recorded: done */
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuStreamQuery(a));
	assert_cuda(cuEventRecord(start, a));
	assert_cuda(busy(f, 1, 32, 2000000, a));
	assert_cuda(cuEventRecord(middle, a));
	assert_cuda(cuStreamWaitEvent(b, middle, 0));
	assert_cuda(busy(f, 1, 32, 500000, b));
	assert_cuda(cuEventRecord_ptsz(end, b));
	assert_cuda(cuEventRecord(untimed, b));
	assert_int_equal(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(middle), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, start, middle), CUDA_ERROR_NOT_READY);
	assert_cuda(cuEventSynchronize(middle));
	assert_cuda(cuStreamQuery(a));
	assert_int_equal(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	assert_cuda(cuEventElapsedTime(&ms, start, middle));
	assert_true(ms == 2.0F);
	assert_cuda(cuStreamSynchronize(b));
	assert_cuda(cuEventElapsedTime_v2(&ms, start, end));
	assert_true(ms == 2.5F);
	assert_cuda(cuEventElapsedTime(&ms, end, middle));
	assert_true(ms == -0.5F);
	assert_int_equal(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuStreamDestroy_v2(a));
	assert_int_equal(cuStreamQuery(a), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(busy(f, 1, 32, 1, a), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuStreamDestroy_v2(b));
	assert_cuda(cuEventDestroy_v2(start));
	assert_int_equal(cuEventRecord(start, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuEventDestroy_v2(middle));
	assert_cuda(cuEventDestroy_v2(end));
	assert_cuda(cuEventDestroy_v2(untimed));
	assert_cuda(cuModuleUnload(module));
}

static void facts_of_streams(void **state HM_UNUSED)
{
	CUstream s;
	CUcontext ctx, now;
	CUdevice dev = -1;
	unsigned long long id = 0, legacy = 0, thread = 0;
	unsigned flags = 0;
	int priority = 9, capture = 9;

	assert_cuda(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -99));
	assert_cuda(cuStreamGetPriority(s, &priority));
	assert_int_equal(priority, -5);
	assert_cuda(cuStreamGetFlags(s, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	assert_cuda(cuStreamGetCtx(s, &ctx));
	assert_cuda(cuCtxGetCurrent(&now));
	assert_ptr_equal(ctx, now);
	assert_cuda(cuStreamGetDevice(s, &dev));
	assert_int_equal(dev, 0);
	assert_cuda(cuStreamGetId(s, &id));
	assert_cuda(cuStreamGetId(NULL, &legacy));
	assert_cuda(cuStreamGetId_ptsz(NULL, &thread));
	assert_int_equal(legacy, 1);
	assert_int_equal(thread, 2);
	assert_true(id > 2);
	assert_cuda(cuStreamIsCapturing(s, &capture));
	assert_int_equal(capture, CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(cuStreamCreate(&s, 7), CUDA_ERROR_INVALID_VALUE);
}

/* The asynchronous launch returns at once; what waits is the synchronous copy. */
static void copies_wait(void **state HM_UNUSED)
{
	CUmodule module = load();
	CUfunction f = function(module, "touch");
	CUdeviceptr p;
	uint64_t n = 100000;
	static unsigned char out[100000];

	assert_cuda(cuMemAlloc_v2(&p, n));
	void *params[] = { &p, &n };

	assert_cuda(cuMemsetD8_v2(p, 0xff, n));
	assert_cuda(cuLaunchKernel_ptsz(f, 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	assert_int_equal(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
	assert_cuda(cuMemcpyDtoH_v2(out, p, n));
	assert_cuda(cuStreamQuery_ptsz(NULL));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(out[i], i & 255);
	assert_cuda(busy(function(module, "busy_ns"), 1, 1, 1000, NULL));
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	assert_cuda(cuMemFree_v2(p)); /* so does a free */
	assert_cuda(cuStreamQuery(NULL));
	assert_cuda(cuModuleUnload(module));
}

/* The same kernel through each form of launch. */
static void forms(void **state HM_UNUSED)
{
	CUmodule module = load();
	CUfunction f = function(module, "busy_ns");
	CUlibrary lib;
	CUkernel kernel;
	CUfunction from_kernel;
	uint64_t ns = 1000, start = sim_now_ns();
	size_t bytes = sizeof ns;
	void *params[] = { &ns }, *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &ns, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
					       CU_LAUNCH_PARAM_END };
	CUlaunchConfig c = {
		.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1
	};
	const char *name = NULL;
	CUkernel both[2];
	unsigned count = 0;
	int loaded = -1;

	assert_cuda(cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	assert_cuda(cuLibraryGetKernel(&kernel, lib, "busy_ns"));
	assert_cuda(cuFuncIsLoaded(&loaded, (CUfunction)(void *)kernel));
	assert_int_equal(loaded, 0);
	assert_cuda(cuKernelGetFunction(&from_kernel, kernel));
	assert_cuda(cuFuncIsLoaded(&loaded, from_kernel));
	assert_int_equal(loaded, 1);
	assert_cuda(cuFuncLoad(from_kernel));
	assert_int_equal(cuFuncLoad((CUfunction)(void *)&count), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuLibraryEnumerateKernels(both, 2, lib));
	assert_true(both[0] == kernel || both[1] == kernel);
	assert_int_equal(cuLibraryEnumerateKernels(both, 0, lib), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "busy_ns");
	assert_cuda(cuLibraryGetKernelCount(&count, lib));
	assert_int_equal(count, 3);
	assert_cuda(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	assert_cuda(cuLaunchKernelEx(&c, f, params, NULL));
	assert_cuda(cuLaunchKernelEx_ptsz(&c, f, params, NULL));
	assert_cuda(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params));
	assert_cuda(cuLaunchKernel((CUfunction)(void *)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	assert_cuda(cuLaunchKernel(from_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(sim_now_ns() - start, 6000);
	bytes = 4;
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuLibraryUnload(lib));
	assert_int_equal(cuLibraryUnload(lib), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuLaunchKernel(from_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuModuleUnload(module));
	assert_int_equal(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(busy(f, 1, 1, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void shapes(void **state HM_UNUSED)
{
	CUmodule module = load();
	CUfunction f = function(module, "busy_ns");
	uint64_t ns = 1;
	void *params[] = { &ns };
	int resident = 0;

	assert_int_equal(busy(f, 0, 1, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(busy(f, 1, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(busy(f, 1, 1025, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 512, 4, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 60000, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
	assert_cuda(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 60000, NULL, params, NULL));
	assert_int_equal(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, f, 256, 0));
	assert_int_equal(resident, 4);
	assert_cuda(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, f, 32, 20 << 10));
	assert_int_equal(resident, 3);
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuModuleUnload(module));
}

static void bad_images(void **state HM_UNUSED)
{
	static const struct {
		const char *image;
		CUresult want;
	} cases[] = {
		{ "", CUDA_ERROR_INVALID_IMAGE },
		{ "hello", CUDA_ERROR_INVALID_PTX },
		{ "\177ELF", CUDA_ERROR_NO_BINARY_FOR_GPU },
		{ "\x50\xed\x55\xba", CUDA_ERROR_NO_BINARY_FOR_GPU },
		{ ".version 8.0\n.target sm_90\n", CUDA_ERROR_NO_BINARY_FOR_GPU }, /* newer than the card */
		{ ".version 8.0\n.target sm_75\n", CUDA_SUCCESS },
	};
	static const char unknown[] = ".version 6.0\n.target sm_50\n.entry mystery() { ret; }";
	CUmodule module;
	CUfunction f;

	for (size_t i = 0; i < HM_COUNT(cases); i++)
		assert_int_equal(cuModuleLoadData(&module, cases[i].image), cases[i].want);
	assert_int_equal(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuModuleLoadDataEx(&module, unknown, 0, NULL, NULL));
	assert_int_equal(cuModuleGetFunction(&f, module, "missing"), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuLaunchKernel(function(module, "mystery"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_NOT_SUPPORTED);
	temp_write("k.ptx", kernels_ptx);
	assert_cuda(cuModuleLoad(&module, temp_path("k.ptx")));
	assert_int_equal(cuModuleLoad(&module, temp_path("none")), CUDA_ERROR_FILE_NOT_FOUND);
}

/* A kernel that leaves its memory spoils the context for good: every later call says so. */
static void illegal_address(void **state HM_UNUSED)
{
	CUcontext ctx;
	CUmodule module;
	CUdeviceptr p;
	uint64_t n = 5000;

	assert_cuda(cuCtxCreate_v2(&ctx, 0, 0));
	module = load();
	assert_cuda(cuMemAlloc_v2(&p, 4096));
	void *params[] = { &p, &n };

	assert_cuda(cuLaunchKernel(function(module, "touch"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemAlloc_v2(&p, 10), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_cuda(cuCtxDestroy_v2(ctx));
	assert_cuda(cuMemAlloc_v2(&p, 10)); /* the other context is well */
	assert_cuda(cuMemFree_v2(p));
}

/* A primary context is one object for ever, but not its fault: the next life starts well. */
static void primary_recovers(void **state HM_UNUSED)
{
	CUcontext before, ctx;
	CUmodule module;
	CUdeviceptr p = 1;
	uint64_t n = 1;
	void *params[] = { &p, &n };

	assert_cuda(cuCtxGetCurrent(&before));
	assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 1));
	assert_cuda(cuCtxSetCurrent(ctx));
	module = load();
	assert_cuda(cuLaunchKernel(function(module, "touch"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuDevicePrimaryCtxRetain(&ctx, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_cuda(cuDevicePrimaryCtxRelease_v2(1));
	assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 1));
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuDevicePrimaryCtxRelease_v2(1));
	assert_cuda(cuCtxSetCurrent(before));
}

/* The test looks at the node's clock through a client of its own. */
static int clock_up(void **state)
{
	cuda_up(state);
	assert_int_equal(sim_attach(), SIM_OK);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(waves),  TEST(streams_and_events), TEST(facts_of_streams), TEST(copies_wait),      TEST(forms),
		TEST(shapes), TEST(bad_images),         TEST(illegal_address),  TEST(primary_recovers),
	};
	return cmocka_run_group_tests(tests, clock_up, node_down);
}
