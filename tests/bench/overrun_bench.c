/* overrun_bench PROCESSES ROUNDS BYTES: processes that race for the last pages of card 0, under libvgpu and a limit. In
 * a round all of them ask for BYTES at the same moment, and those that got them hold them until all have been answered.
 * Prints one line of JSON: {"granted", "refused", "most" (that held at once, of all rounds), "us_a_round"}. */
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/num.h"

#define DRIVER_CALLS                                                                                                   \
	X(cuInit)                                                                                                      \
	X(cuDevicePrimaryCtxRetain)                                                                                    \
	X(cuCtxSetCurrent)                                                                                             \
	X(cuMemAlloc_v2)                                                                                               \
	X(cuMemFree_v2)
#include "harness/driver_calls.h"

enum { MAX_PROCESSES = 1000 };

static struct shared {
	_Atomic uint32_t arrived, turn; /* a barrier: the last to arrive begins the next turn */
	uint32_t processes;
	_Atomic uint32_t holding; /* in this round */
	_Atomic uint64_t granted, refused, most;
	double began;
} * shared;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static bool start(void)
{
	CUcontext ctx;

	return driver_calls_load() == NULL && cuda.cuInit(0) == CUDA_SUCCESS &&
	       cuda.cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS && cuda.cuCtxSetCurrent(ctx) == CUDA_SUCCESS;
}

static void meet(void)
{
	uint32_t turn = shared->turn;

	if (++shared->arrived == shared->processes) {
		shared->arrived = 0;
		shared->turn = turn + 1;
		syscall(SYS_futex, &shared->turn, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
		return;
	}
	while (shared->turn == turn)
		syscall(SYS_futex, &shared->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
}

static void note_most(uint64_t now)
{
	uint64_t most = shared->most;

	while (now > most && !__atomic_compare_exchange_n((uint64_t *)&shared->most, &most, now, false,
							  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static bool race(size_t bytes)
{
	CUdeviceptr ptr;
	CUresult code;

	meet();
	code = cuda.cuMemAlloc_v2(&ptr, bytes);
	if (code == CUDA_SUCCESS) {
		shared->granted++;
		note_most(++shared->holding);
	} else {
		shared->refused++;
	}
	meet();
	if (code != CUDA_SUCCESS)
		return code == CUDA_ERROR_OUT_OF_MEMORY;
	shared->holding--;
	return cuda.cuMemFree_v2(ptr) == CUDA_SUCCESS;
}

static _Noreturn void live(uint64_t rounds, size_t bytes)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!start())
		_exit(1);
	meet();
	if (shared->began == 0)
		shared->began = now_us();
	for (uint64_t i = 0; i < rounds; i++) {
		if (!race(bytes))
			_exit(2);
	}
	_exit(0);
}

static int await_all(uint64_t processes)
{
	int status;

	for (uint64_t i = 0; i < processes; i++) {
		if (wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		fprintf(stderr, "overrun_bench: a process ended with %d\n", status);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t processes, rounds, bytes;

	if (argc != 4 || !num_u64_str(argv[1], MAX_PROCESSES, &processes) ||
	    !num_u64_str(argv[2], 100000000, &rounds) || !num_u64_str(argv[3], SIZE_MAX, &bytes) || processes == 0 ||
	    rounds == 0) {
		fprintf(stderr, "usage: overrun_bench PROCESSES ROUNDS BYTES\n");
		return 2;
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	shared->processes = (uint32_t)processes;
	for (uint64_t i = 0; i < processes; i++) {
		pid_t child = fork();

		if (child == 0)
			live(rounds, bytes);
		if (child < 0)
			return 1;
	}
	if (await_all(processes) != 0)
		return 1; /* the others end with us */
	printf("{\"granted\": %lu, \"refused\": %lu, \"most\": %lu, \"us_a_round\": %.1f}\n",
	       (unsigned long)shared->granted, (unsigned long)shared->refused, (unsigned long)shared->most,
	       (now_us() - shared->began) / (double)rounds);
	return 0;
}
