#include <pthread.h>

#include "core/macros.h"
#include "fixture.h"

/* The card's free memory, seen from card 1's context, which stays out of the way. */
static size_t used_on_card_0(void)
{
	CUcontext watch, before;
	size_t left, total;

	assert_cuda(cuCtxGetCurrent(&before));
	assert_cuda(cuCtxCreate_v2(&watch, 0, 0));
	assert_cuda(cuMemGetInfo_v2(&left, &total));
	assert_cuda(cuCtxDestroy_v2(watch));
	assert_cuda(cuCtxSetCurrent(before));
	return total - left - CONTEXT_BYTES;
}

static void primary_is_counted(void **state HM_UNUSED)
{
	CUcontext a, b;
	unsigned flags = 99;
	int active = -1;

	assert_cuda(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	assert_int_equal(flags, 0);
	assert_int_equal(used_on_card_0(), 0);
	assert_cuda(cuDevicePrimaryCtxRetain(&a, 0));
	assert_cuda(cuDevicePrimaryCtxRetain(&b, 0));
	assert_ptr_equal(a, b);
	assert_int_equal(used_on_card_0(), CONTEXT_BYTES);
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	assert_cuda(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 1);
	assert_int_equal(used_on_card_0(), CONTEXT_BYTES);
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	assert_int_equal(used_on_card_0(), 0);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuDevicePrimaryCtxRetain(&a, 7), CUDA_ERROR_INVALID_DEVICE);
}

static void release_frees_all(void **state HM_UNUSED)
{
	CUcontext ctx;
	CUdeviceptr ptr;
	CUstream stream;

	for (int i = 0; i < 2; i++) {
		assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 0));
		assert_cuda(cuCtxSetCurrent(ctx));
		assert_cuda(cuMemAlloc_v2(&ptr, 10 * MIB));
		assert_cuda(cuMemAlloc_v2(&ptr, 100));
		assert_cuda(cuMemAllocAsync(&ptr, 100, NULL));
		assert_cuda(cuStreamCreate(&stream, 0));
		assert_int_equal(used_on_card_0(), CONTEXT_BYTES + 10 * MIB + PAGE + 32 * MIB);
		if (i == 0)
			assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
		else
			assert_cuda(cuDevicePrimaryCtxReset_v2(0));
		assert_int_equal(cuMemAlloc_v2(&ptr, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
		assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
		assert_int_equal(used_on_card_0(), 0);
		assert_cuda(cuCtxSetCurrent(NULL));
	}
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void primary_lives_again(void **state HM_UNUSED)
{
	CUcontext ctx, again;
	CUdeviceptr ptr;

	assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 0));
	assert_cuda(cuCtxSetCurrent(ctx));
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	assert_int_equal(cuMemAlloc_v2(&ptr, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_cuda(cuDevicePrimaryCtxRetain(&again, 0));
	assert_ptr_equal(ctx, again);
	assert_cuda(cuMemAlloc_v2(&ptr, 100)); /* still current in this thread */
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	assert_cuda(cuCtxSetCurrent(NULL));
}

static void the_stack(void **state HM_UNUSED)
{
	CUcontext a, b, got;
	CUdevice dev = -1;

	assert_int_equal(cuCtxGetDevice(&dev), CUDA_ERROR_INVALID_CONTEXT);
	assert_cuda(cuCtxGetCurrent(&got));
	assert_null(got);
	assert_int_equal(cuCtxPopCurrent_v2(&got), CUDA_ERROR_INVALID_CONTEXT);
	assert_cuda(cuCtxCreate_v2(&a, 4, 0));
	assert_cuda(cuCtxCreate_v4(&b, NULL, 0, 1));
	assert_cuda(cuCtxGetDevice(&dev));
	assert_int_equal(dev, 1);
	assert_cuda(cuCtxGetDevice_v2(&dev, a));
	assert_int_equal(dev, 0);
	assert_cuda(cuCtxPushCurrent_v2(a));
	assert_cuda(cuCtxGetDevice(&dev));
	assert_int_equal(dev, 0);
	assert_cuda(cuCtxPopCurrent_v2(&got));
	assert_ptr_equal(got, a);
	assert_cuda(cuCtxSetCurrent(a)); /* in place of b */
	assert_cuda(cuCtxPopCurrent_v2(&got));
	assert_ptr_equal(got, a);
	assert_cuda(cuCtxGetCurrent(&got));
	assert_ptr_equal(got, a);        /* what cuCtxCreate pushed first */
	assert_cuda(cuCtxDestroy_v2(a)); /* the current one leaves the stack */
	assert_cuda(cuCtxGetCurrent(&got));
	assert_null(got);
	assert_cuda(cuCtxDestroy_v2(b));
	assert_int_equal(cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxDestroy_v2(NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxPushCurrent_v2(b), CUDA_ERROR_INVALID_CONTEXT);
}

static void *destroy_it(void *ctx)
{
	return cuCtxDestroy_v2(ctx) == CUDA_SUCCESS ? ctx : NULL;
}

static void destroyed_elsewhere(void **state HM_UNUSED)
{
	CUcontext ctx, other;
	CUdeviceptr ptr;
	pthread_t thread;
	void *done = NULL;

	assert_cuda(cuCtxCreate_v2(&ctx, 0, 0));
	assert_int_equal(pthread_create(&thread, NULL, destroy_it, ctx), 0);
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_ptr_equal(done, ctx);
	assert_int_equal(cuMemAlloc_v2(&ptr, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_cuda(cuCtxCreate_v2(&other, 0, 0)); /* perhaps at the same address: another context all the same */
	assert_cuda(cuCtxPopCurrent_v2(NULL));
	assert_int_equal(cuMemAlloc_v2(&ptr, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_cuda(cuCtxSetCurrent(NULL));
	assert_cuda(cuCtxDestroy_v2(other));
	assert_int_equal(used_on_card_0(), 0);
}

static void versions_and_settings(void **state HM_UNUSED)
{
	CUctxCreateParams params = { .numExecAffinityParams = 1 };
	CUcontext one, two, three;
	unsigned version = 0, flags = 0;
	unsigned long long id_one = 0, id_two = 0;
	size_t limit = 0;
	int least = 9, greatest = 9, config = -1;

	assert_cuda(cuCtxCreate(&one, 0, 0));
	assert_cuda(cuCtxCreate_v3(&three, NULL, 0, 0, 0));
	assert_cuda(cuCtxCreate_v2(&two, 2, 0));
	assert_int_equal(cuCtxCreate_v4(&three, &params, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuCtxCreate_v2(&three, 0x10000, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuCtxGetApiVersion(one, &version));
	assert_int_equal(version, 3010);
	assert_cuda(cuCtxGetApiVersion(NULL, &version));
	assert_int_equal(version, 3020);
	assert_cuda(cuCtxGetFlags(&flags));
	assert_int_equal(flags, 2);
	assert_cuda(cuCtxGetId(one, &id_one));
	assert_cuda(cuCtxGetId(two, &id_two));
	assert_int_not_equal(id_one, id_two);
	assert_cuda(cuCtxSetLimit(2, 64 * MIB));
	assert_cuda(cuCtxGetLimit(&limit, 2));
	assert_int_equal(limit, 64 * MIB);
	assert_int_equal(cuCtxSetLimit(99, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuCtxSetCacheConfig(2));
	assert_cuda(cuCtxGetCacheConfig(&config));
	assert_int_equal(config, 2);
	assert_cuda(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_int_equal(least, 0);
	assert_true(greatest < 0);
	assert_cuda(cuCtxDestroy_v2(two));
	assert_cuda(cuCtxDestroy_v2(three));
	assert_cuda(cuCtxDestroy_v2(one));
}

/* Ten contexts of 100 MiB do not fit in 1000 MiB beside one another and anything else. */
static void overhead_can_be_refused(void **state HM_UNUSED)
{
	CUcontext ctx[10], more;

	for (size_t i = 0; i < HM_COUNT(ctx); i++)
		assert_cuda(cuCtxCreate_v2(&ctx[i], 0, 0));
	assert_int_equal(cuCtxCreate_v2(&more, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuDevicePrimaryCtxRetain(&more, 0), CUDA_ERROR_OUT_OF_MEMORY);
	for (size_t i = HM_COUNT(ctx); i > 0; i--)
		assert_cuda(cuCtxDestroy_v2(ctx[i - 1]));
	assert_int_equal(used_on_card_0(), 0);
}

static void primary_flags(void **state HM_UNUSED)
{
	CUcontext ctx;
	unsigned flags = 0;
	int active;

	assert_cuda(cuDevicePrimaryCtxSetFlags(0, 4));
	assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 0));
	assert_cuda(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(flags, 4);
	assert_int_equal(cuDevicePrimaryCtxSetFlags(0, 1), CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
	assert_cuda(cuDevicePrimaryCtxSetFlags_v2(0, 1));
	assert_int_equal(cuDevicePrimaryCtxSetFlags_v2(0, 0x1000), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxDestroy_v2(ctx), CUDA_ERROR_INVALID_CONTEXT); /* not by this call */
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
}

static void attach_and_detach(void **state HM_UNUSED)
{
	CUcontext ctx, got;

	assert_int_equal(cuCtxAttach(&got, 0), CUDA_ERROR_INVALID_CONTEXT);
	assert_cuda(cuCtxCreate_v2(&ctx, 0, 0));
	assert_cuda(cuCtxAttach(&got, 0));
	assert_ptr_equal(got, ctx);
	assert_int_equal(cuCtxAttach(&got, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuCtxDetach(ctx));
	assert_cuda(cuCtxSynchronize()); /* still there */
	assert_cuda(cuCtxDetach(ctx));
	assert_int_equal(cuCtxDetach(ctx), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(used_on_card_0(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(primary_is_counted),      cmocka_unit_test(release_frees_all),
		cmocka_unit_test(primary_lives_again),     cmocka_unit_test(the_stack),
		cmocka_unit_test(destroyed_elsewhere),     cmocka_unit_test(versions_and_settings),
		cmocka_unit_test(overhead_can_be_refused), cmocka_unit_test(primary_flags),
		cmocka_unit_test(attach_and_detach),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
