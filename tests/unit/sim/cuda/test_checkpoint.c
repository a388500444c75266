#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"
#include "fixture.h"
#include "sim/lib/sim_client.h"

static CUprocessState state_now(void)
{
	CUprocessState s = 9;

	assert_cuda(cuCheckpointProcessGetState(getpid(), &s));
	return s;
}

/* As another process sees it: calls of this one wait. */
static uint64_t used(void)
{
	return sim_mem_used(0);
}

/* Off the card as a whole, context and all, and back with the same bytes in it. */
static void off_and_on(void **state HM_UNUSED)
{
	CUdeviceptr p, pooled;
	unsigned char got = 0;

	assert_int_equal(sim_attach(), SIM_OK);
	assert_cuda(cuMemAlloc_v2(&p, 10 * MIB));
	assert_cuda(cuMemsetD8_v2(p, 5, 10 * MIB));
	assert_cuda(cuMemAllocAsync(&pooled, MIB, NULL));
	uint64_t before = used();

	assert_int_equal(state_now(), CU_PROCESS_STATE_RUNNING);
	assert_cuda(cuCheckpointProcessLock(getpid(), NULL));
	assert_int_equal(state_now(), CU_PROCESS_STATE_LOCKED);
	assert_int_equal(used(), before);
	assert_cuda(cuCheckpointProcessCheckpoint(getpid(), NULL));
	assert_int_equal(state_now(), CU_PROCESS_STATE_CHECKPOINTED);
	assert_int_equal(used(), RESERVED_BYTES);
	assert_int_equal(before - used(), CONTEXT_BYTES + 42 * MIB);
	assert_cuda(cuCheckpointProcessRestore(getpid(), NULL));
	assert_int_equal(state_now(), CU_PROCESS_STATE_LOCKED);
	assert_int_equal(used(), before);
	assert_cuda(cuCheckpointProcessUnlock(getpid(), NULL));
	assert_cuda(cuMemcpyDtoH_v2(&got, p + 10 * MIB - 1, 1));
	assert_int_equal(got, 5);
	assert_cuda(cuMemFree_v2(p));
	assert_cuda(cuMemFreeAsync(pooled, NULL));
	assert_cuda(cuCtxSynchronize());
}

static void order(void **state HM_UNUSED)
{
	int pid = getpid();

	assert_int_equal(cuCheckpointProcessCheckpoint(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuCheckpointProcessUnlock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_cuda(cuCheckpointProcessLock(pid, NULL));
	assert_int_equal(cuCheckpointProcessLock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_cuda(cuCheckpointProcessCheckpoint(pid, NULL));
	assert_int_equal(cuCheckpointProcessUnlock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_cuda(cuCheckpointProcessRestore(pid, NULL));
	assert_cuda(cuCheckpointProcessUnlock(pid, NULL));
	assert_int_equal(cuCheckpointProcessLock(1, NULL), CUDA_ERROR_NOT_SUPPORTED); /* another process */
	assert_int_equal(cuCheckpointProcessGetState(pid, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* While it was away another process took the room. */
static void no_room_to_come_back(void **state HM_UNUSED)
{
	CUdeviceptr p;
	struct program other;
	char line[512];

	assert_cuda(cuMemAlloc_v2(&p, 500 * MIB));
	assert_cuda(cuCheckpointProcessLock(getpid(), NULL));
	assert_cuda(cuCheckpointProcessCheckpoint(getpid(), NULL));
	program_start(&other, PROBE_PATH, (const char *const[]) { "alloc", "600", "--until-eof", NULL });
	program_line(&other, line, sizeof line);
	uint64_t before = used();

	assert_int_equal(cuCheckpointProcessRestore(getpid(), NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(used(), before); /* nothing of it stays */
	assert_int_equal(state_now(), CU_PROCESS_STATE_CHECKPOINTED);
	program_end(&other);
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

	for (int i = 0; i < 500 && rc == CUDA_ERROR_OUT_OF_MEMORY; i++) {
		rc = cuCheckpointProcessRestore(getpid(), NULL);
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
	}
	assert_cuda(rc);
	assert_cuda(cuCheckpointProcessUnlock(getpid(), NULL));
	assert_cuda(cuMemFree_v2(p));
}

static _Atomic int done;

static void *call(void *arg HM_UNUSED)
{
	int n;

	done = cuDeviceGetCount(&n) == CUDA_SUCCESS ? 1 : -1;
	return NULL;
}

static void others_wait(void **state HM_UNUSED)
{
	pthread_t thread;

	done = 0;
	assert_cuda(cuCheckpointProcessLock(getpid(), NULL));
	assert_int_equal(pthread_create(&thread, NULL, call, NULL), 0);
	nanosleep(&(struct timespec) { .tv_nsec = 50000000 }, NULL);
	assert_int_equal(done, 0);
	assert_cuda(cuCheckpointProcessUnlock(getpid(), NULL));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(done, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(off_and_on),
		TEST(order),
		TEST(no_room_to_come_back),
		TEST(others_wait),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
