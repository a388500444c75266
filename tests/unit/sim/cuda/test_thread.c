/* Threads of one process at everything at once; afterwards nothing is left. Worth running under a thread sanitizer. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"

enum { THREADS = 8, ROUNDS = 300 };

static CUcontext shared;
static CUfunction touch;

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245U + 12345U;
	return *seed >> 16;
}

/* Allocates in one of four ways, fills, checks and frees: 0 if all went well or there was no memory. */
static CUresult one_round(unsigned *seed, CUstream stream)
{
	uint64_t bytes = 1 + next_random(seed) % (4 * MIB);
	unsigned way = next_random(seed) % 4;
	unsigned char last = 0;
	CUdeviceptr p = 0;
	CUresult rc = way == 0   ? cuMemAllocAsync(&p, bytes, stream)
		      : way == 1 ? cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL)
				 : cuMemAlloc_v2(&p, bytes);
	void *params[] = { &p, &bytes };

	if (rc == CUDA_SUCCESS)
		rc = cuLaunchKernel(touch, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
	if (rc == CUDA_SUCCESS)
		rc = cuStreamSynchronize(stream);
	if (rc == CUDA_SUCCESS)
		rc = cuMemcpyDtoH_v2(&last, p + bytes - 1, 1);
	if (rc == CUDA_SUCCESS && last != (unsigned char)(bytes - 1))
		rc = CUDA_ERROR_UNKNOWN;
	if (rc == CUDA_SUCCESS)
		rc = way == 2 ? cuMemFreeAsync(p, stream) : cuMemFree_v2(p);
	return rc;
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	CUresult rc = cuCtxSetCurrent(shared);

	for (int i = 0; i < ROUNDS && rc == CUDA_SUCCESS; i++) {
		CUstream stream;

		rc = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
		if (rc == CUDA_SUCCESS)
			rc = one_round(&seed, stream);
		if (rc == CUDA_SUCCESS)
			rc = cuStreamDestroy_v2(stream);
	}
	if (rc == CUDA_SUCCESS)
		return NULL;
	printf("thread %u: %d\n", (unsigned)(uintptr_t)arg, rc);
	return arg;
}

static void all_at_once(void **state HM_UNUSED)
{
	pthread_t threads[THREADS];
	CUmodule module;

	assert_cuda(cuCtxGetCurrent(&shared));
	assert_cuda(cuModuleLoadData(&module, kernels_ptx));
	assert_cuda(cuModuleGetFunction(&touch, module, "touch"));
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *failed = NULL;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_cuda(cuCtxSynchronize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_at_once, context_up, context_down),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
