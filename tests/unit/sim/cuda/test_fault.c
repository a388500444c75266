/* A card that falls off the bus and a driver that is reloaded under a process. Each scenario runs in a process of its
 * own, which says by its exit status which line was not as expected. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"
#include "harness/temp.h"

static void simctl(const char *a, const char *b, const char *c)
{
	struct program p;

	program_start(&p, SIMCTL_PATH, (const char *const[]) { a, b, c, NULL });
	assert_int_equal(program_end(&p), 0);
}

/* The line's number above 255 does not go through an exit status: it is printed. */
#define EXPECT(call, want)                                                                                             \
	do {                                                                                                           \
		int got_ = (call);                                                                                     \
		if (got_ != (want)) {                                                                                  \
			printf("line %d: %d, not %d\n", __LINE__, got_, (want));                                       \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

static void in_child(int (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int rc = run();

		fflush(stdout);
		_exit(rc);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* With a context on each card, memory on the first and work queued there. */
static CUcontext contexts[CARDS];
static CUdeviceptr memory;
static CUevent event;

static int prepare(void)
{
	CUmodule module;
	CUfunction f;
	uint64_t ns = 1000000;
	void *params[] = { &ns };

	EXPECT(cuInit(0), CUDA_SUCCESS);
	EXPECT(cuCtxCreate_v2(&contexts[1], 0, 1), CUDA_SUCCESS);
	EXPECT(cuCtxCreate_v2(&contexts[0], 0, 0), CUDA_SUCCESS);
	EXPECT(cuMemAlloc_v2(&memory, 10 * MIB), CUDA_SUCCESS);
	EXPECT(cuModuleLoadData(&module, kernels_ptx), CUDA_SUCCESS);
	EXPECT(cuModuleGetFunction(&f, module, "busy_ns"), CUDA_SUCCESS);
	EXPECT(cuEventCreate(&event, 0), CUDA_SUCCESS);
	EXPECT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
	EXPECT(cuEventRecord(event, NULL), CUDA_SUCCESS);
	return 0;
}

static int all_fails(void)
{
	CUdeviceptr ptr;
	size_t left, total;

	EXPECT(cuMemGetInfo_v2(&left, &total), CUDA_ERROR_UNKNOWN); /* which itself asks nobody */
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
	EXPECT(cuMemAlloc_v2(&ptr, 1), CUDA_ERROR_UNKNOWN);
	EXPECT(cuMemFree_v2(memory), CUDA_ERROR_UNKNOWN);
	EXPECT(cuMemsetD8_v2(memory, 0, 1), CUDA_ERROR_UNKNOWN);
	EXPECT(cuEventSynchronize(event), CUDA_ERROR_UNKNOWN);
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_UNKNOWN);
	return 0;
}

static int lost_and_back(void)
{
	CUdeviceptr ptr;

	if (prepare() != 0)
		return 1;
	simctl("gpu", "0", "lost");
	if (all_fails() != 0)
		return 1;
	EXPECT(cuCtxSetCurrent(contexts[1]), CUDA_SUCCESS); /* the other card is well */
	EXPECT(cuMemAlloc_v2(&ptr, MIB), CUDA_SUCCESS);
	EXPECT(cuMemFree_v2(ptr), CUDA_SUCCESS);
	simctl("gpu", "0", "recover");
	EXPECT(cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
	if (all_fails() != 0) /* what was on it is gone all the same */
		return 1;
	EXPECT(cuCtxDestroy_v2(contexts[0]), CUDA_SUCCESS);
	EXPECT(cuCtxDestroy_v2(contexts[1]), CUDA_SUCCESS);
	return 0;
}

static int reloaded(void)
{
	if (prepare() != 0)
		return 1;
	simctl("driver-reload", NULL, NULL);
	if (all_fails() != 0)
		return 1;
	EXPECT(cuCtxDestroy_v2(contexts[0]), CUDA_SUCCESS);
	return 0;
}

static int all_well(void)
{
	size_t left = 0, total = 0;

	if (prepare() != 0)
		return 1;
	EXPECT(cuCtxSynchronize(), CUDA_SUCCESS);
	EXPECT(cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
	EXPECT(left == ROOM_BYTES - 10 * MIB, true);
	return 0;
}

static void scenarios(void **state HM_UNUSED)
{
	in_child(all_well);
	in_child(lost_and_back);
	in_child(all_well);
	in_child(reloaded);
	in_child(all_well);
}

static int stray_takes_room(void)
{
	CUcontext ctx;
	size_t left = 0, total = 0;

	EXPECT(cuInit(0), CUDA_SUCCESS);
	EXPECT(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
	EXPECT(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
	EXPECT(cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
	EXPECT(left == ROOM_BYTES - CONTEXT_BYTES - 500 * MIB, true);
	EXPECT(cuMemAlloc_v2(&memory, ROOM_BYTES - CONTEXT_BYTES - 500 * MIB + 1), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cuMemAlloc_v2(&memory, ROOM_BYTES - CONTEXT_BYTES - 500 * MIB), CUDA_SUCCESS);
	return 0;
}

/* The stray process is told to end; it does so in its own time. */
static int room_comes_back(void)
{
	CUcontext ctx;
	size_t left = 0, total = 0;

	EXPECT(cuInit(0), CUDA_SUCCESS);
	EXPECT(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
	for (int i = 0; i < 500 && left != ROOM_BYTES; i++) {
		usleep(10000);
		EXPECT(cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
	}
	EXPECT(left == ROOM_BYTES, true);
	return 0;
}

static void stray_process(void **state HM_UNUSED)
{
	struct program p;

	program_start(&p, SIMCTL_PATH, (const char *const[]) { "gpu", "0", "hold", "500", NULL });
	assert_int_equal(program_end(&p), 0);
	in_child(stray_takes_room);
	program_start(&p, SIMCTL_PATH, (const char *const[]) { "gpu", "0", "hold", "0", NULL });
	assert_int_equal(program_end(&p), 0);
	in_child(room_comes_back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scenarios),
		cmocka_unit_test(stray_process),
	};
	return cmocka_run_group_tests(tests, node_up, node_down);
}
