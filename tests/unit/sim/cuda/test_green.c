#include <string.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"
#include "sim/lib/sim_client.h"

#define GREEN_BYTES (8 * MIB)

static CUdevResource all_sms(void)
{
	CUdevResource r;

	assert_cuda(cuDeviceGetDevResource(0, &r, CU_DEV_RESOURCE_TYPE_SM));
	return r;
}

static CUgreenCtx make(unsigned sms)
{
	CUdevResource all = all_sms(), part;
	CUdevResourceDesc desc;
	CUgreenCtx g = NULL;
	unsigned n = 1;

	assert_cuda(cuDevSmResourceSplitByCount(&part, &n, &all, NULL, 0, sms));
	assert_int_equal(n, 1);
	assert_cuda(cuDevResourceGenerateDesc(&desc, &part, 1));
	assert_cuda(cuGreenCtxCreate(&g, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	return g;
}

/* 40 SMs in steps of two. */
static void splits(void **state HM_UNUSED)
{
	static const struct {
		unsigned min, room, groups, size, rest;
	} cases[] = {
		{ 8, 9, 5, 8, 0 },  { 7, 9, 5, 8, 0 },   { 9, 9, 4, 10, 0 }, { 12, 9, 3, 12, 4 },
		{ 8, 2, 2, 8, 24 }, { 40, 1, 1, 40, 0 }, { 0, 9, 9, 2, 22 }, { 21, 9, 1, 22, 18 },
	};
	CUdevResource all = all_sms(), parts[9], rest, again[2];
	unsigned n;

	assert_int_equal(all.type, CU_DEV_RESOURCE_TYPE_SM);
	assert_int_equal(all.sm.smCount, SMS);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		print_message("case %zu\n", i);
		n = cases[i].room;
		assert_cuda(cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, cases[i].min));
		assert_int_equal(n, cases[i].groups);
		assert_int_equal(parts[n - 1].sm.smCount, cases[i].size);
		assert_int_equal(rest.sm.smCount, cases[i].rest);
		assert_int_equal(rest.type, cases[i].rest > 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID);
	}
	assert_cuda(cuDevSmResourceSplitByCount(NULL, &n, &all, NULL, 0, 8)); /* how many there could be */
	assert_int_equal(n, 5);
	n = 2;
	assert_int_equal(cuDevSmResourceSplitByCount(again, &n, &parts[0], NULL, 0, 2),
			 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* split already */
	assert_int_equal(cuDevSmResourceSplitByCount(again, &n, &all, NULL, 0, 41),
			 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	memset(&rest, 0, sizeof rest);
	assert_int_equal(cuDevSmResourceSplitByCount(again, &n, &rest, NULL, 0, 2), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	assert_int_equal(cuDeviceGetDevResource(0, &rest, 2), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	assert_int_equal(cuDeviceGetDevResource(2, &rest, 1), CUDA_ERROR_INVALID_DEVICE);
}

static void descriptions(void **state HM_UNUSED)
{
	CUdevResource all = all_sms(), other, mixed[2], bad = { 0 };
	CUdevResourceDesc desc;
	CUgreenCtx g;

	assert_cuda(cuDeviceGetDevResource(1, &other, CU_DEV_RESOURCE_TYPE_SM));
	mixed[0] = all;
	mixed[1] = other;
	assert_int_equal(cuDevResourceGenerateDesc(&desc, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	mixed[1] = all; /* more than there are */
	assert_int_equal(cuDevResourceGenerateDesc(&desc, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	assert_int_equal(cuDevResourceGenerateDesc(&desc, &bad, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	assert_int_equal(cuDevResourceGenerateDesc(&desc, &all, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuDevResourceGenerateDesc(&desc, &other, 1));
	assert_int_equal(cuGreenCtxCreate(&g, desc, 0, 1), CUDA_ERROR_INVALID_VALUE); /* another device's */
	assert_int_equal(cuGreenCtxCreate(&g, NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGreenCtxCreate(&g, desc, 1, 2), CUDA_ERROR_INVALID_VALUE);
}

/* Kernels of its streams have its SMs alone: 8 of them hold 16 blocks of 512 threads at once. */
static void fewer_sms(void **state HM_UNUSED)
{
	CUgreenCtx g = make(8), got;
	CUdevResource r;
	CUcontext ctx, before;
	CUstream s;
	CUevent event;
	CUmodule module;
	CUfunction f;
	uint64_t ns = 1000000;
	void *params[] = { &ns };
	unsigned long long id = 0;

	assert_cuda(cuModuleLoadData(&module, kernels_ptx)); /* the primary context's */
	assert_cuda(cuModuleGetFunction(&f, module, "busy_ns"));
	assert_cuda(cuEventCreate(&event, 0));
	assert_int_equal(cuGreenCtxStreamCreate(&s, g, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGreenCtxStreamCreate(&s, g, CU_STREAM_NON_BLOCKING, 0));
	assert_cuda(cuStreamGetGreenCtx(s, &got));
	assert_ptr_equal(got, g);
	assert_cuda(cuStreamGetGreenCtx(NULL, &got));
	assert_null(got);
	assert_cuda(cuGreenCtxGetId(g, &id));
	assert_int_not_equal(id, 0);
	assert_int_equal(sim_attach(), SIM_OK);
	uint64_t start = sim_now_ns();

	assert_cuda(cuLaunchKernel(f, 17, 1, 1, 512, 1, 1, 0, s, params, NULL)); /* two waves */
	assert_cuda(cuEventRecord(event, s));
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_cuda(cuStreamSynchronize(s));
	assert_int_equal(sim_now_ns() - start, 2000000);
	assert_int_equal(cuLaunchCooperativeKernel(f, 17, 1, 1, 512, 1, 1, 0, s, params),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	start = sim_now_ns();
	assert_cuda(cuLaunchKernel(f, 17, 1, 1, 512, 1, 1, 0, NULL, params, NULL)); /* all SMs */
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(sim_now_ns() - start, 1000000);
	assert_cuda(cuCtxFromGreenCtx(&ctx, g));
	assert_cuda(cuCtxGetCurrent(&before));
	assert_cuda(cuCtxSetCurrent(ctx));
	assert_cuda(cuCtxGetDevResource(NULL, &r, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(r.sm.smCount, 8);
	memset(&r, 0, sizeof r);
	assert_cuda(cuGreenCtxGetDevResource(g, &r, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(r.sm.smCount, 8);
	assert_cuda(cuCtxGetDevResource(before, &r, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(r.sm.smCount, SMS);
	start = sim_now_ns();
	assert_cuda(cuLaunchKernel(f, 17, 1, 1, 512, 1, 1, 0, NULL, params, NULL));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(sim_now_ns() - start, 2000000);
	assert_int_equal(cuCtxDestroy_v2(ctx), CUDA_ERROR_INVALID_CONTEXT); /* not by this call */
	assert_cuda(cuCtxSetCurrent(before));
	assert_cuda(cuEventDestroy_v2(event));
	assert_cuda(cuModuleUnload(module));
	assert_cuda(cuGreenCtxDestroy(g));
	assert_int_equal(cuGreenCtxDestroy(g), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuGreenCtxGetDevResource(g, &r, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuGreenCtxGetId(g, &id), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxFromGreenCtx(&ctx, g), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
}

/* It costs little, keeps the primary context, and what is allocated in it is the primary context's. */
static void memory(void **state HM_UNUSED)
{
	CUgreenCtx g = make(20);
	CUcontext ctx, primary;
	CUdeviceptr p, pooled;
	CUdevice dev = 9;
	int active = 0;

	assert_int_equal(free_bytes(), ROOM_BYTES - GREEN_BYTES);
	assert_cuda(cuCtxGetCurrent(&primary));
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0)); /* our own use; the green one's is left */
	assert_cuda(cuDevicePrimaryCtxGetState(0, &(unsigned) { 0 }, &active));
	assert_int_equal(active, 1);
	assert_cuda(cuCtxFromGreenCtx(&ctx, g));
	assert_cuda(cuCtxSetCurrent(ctx));
	assert_cuda(cuCtxGetDevice(&dev));
	assert_int_equal(dev, 0);
	assert_cuda(cuMemAlloc_v2(&p, 10 * MIB));
	assert_cuda(cuMemAllocAsync(&pooled, MIB, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - GREEN_BYTES - 42 * MIB);
	assert_cuda(cuDevicePrimaryCtxRetain(&primary, 0));
	assert_cuda(cuCtxSetCurrent(primary));
	assert_cuda(cuGreenCtxDestroy(g));
	assert_int_equal(free_bytes(), ROOM_BYTES - 42 * MIB);
	assert_cuda(cuMemsetD8_v2(p, 1, 10 * MIB));
	assert_cuda(cuMemFree_v2(p));
	assert_cuda(cuMemFreeAsync(pooled, NULL));
	assert_cuda(cuCtxSynchronize());
}

static void refused_when_full(void **state HM_UNUSED)
{
	CUdevResource all = all_sms();
	CUdevResourceDesc desc;
	CUgreenCtx g;
	CUdeviceptr big;

	assert_cuda(cuDevResourceGenerateDesc(&desc, &all, 1));
	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - GREEN_BYTES + PAGE));
	assert_int_equal(cuGreenCtxCreate(&g, desc, 0, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFree_v2(big));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(splits), TEST(descriptions), TEST(fewer_sms), TEST(memory), TEST(refused_when_full),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
