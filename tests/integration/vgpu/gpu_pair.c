/* gpu-pair DEVICES ROUNDS NS AT_ONCE PROCESSES: a collective's kernels. Each round launches one on each of the devices
 * (one digit each: "01"; "0" and "1" in two processes), which waits on its card until the round's other one has started
 * and then runs for NS. AT_ONCE launches are made on a device before the next device's turn, then all are waited for.
 * Says "up", reads a line, meets with PROCESSES (virtual_time.h), runs, and prints the milliseconds that it took. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "abi/cuda_api.h"
#include "core/num.h"
#include "harness/kernels_ptx.h"
#include "virtual_time.h"

enum { DEVICES = 2, FIRST_KEY = 1 << 20 };

static CUcontext contexts[DEVICES];
static CUfunction functions[DEVICES];

static bool start(const char *devices)
{
	CUmodule module;

	if (cuInit(0) != CUDA_SUCCESS)
		return false;
	for (unsigned i = 0; devices[i] != '\0'; i++) {
		if (i == DEVICES || cuDevicePrimaryCtxRetain(&contexts[i], devices[i] - '0') != CUDA_SUCCESS ||
		    cuCtxSetCurrent(contexts[i]) != CUDA_SUCCESS ||
		    cuModuleLoadData(&module, kernels_ptx) != CUDA_SUCCESS ||
		    cuModuleGetFunction(&functions[i], module, "meet") != CUDA_SUCCESS)
			return false;
	}
	return true;
}

static bool launch(unsigned i, uint64_t key, uint64_t ns)
{
	void *params[] = { &key, &ns };

	return cuLaunchKernel(functions[i], 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS;
}

static bool run(uint64_t rounds, uint64_t ns, uint64_t at_once)
{
	for (uint64_t round = 0; round < rounds; round += at_once) {
		for (unsigned i = 0; i < DEVICES && contexts[i] != NULL; i++) {
			if (cuCtxSetCurrent(contexts[i]) != CUDA_SUCCESS)
				return false;
			for (uint64_t k = round; k < round + at_once; k++) {
				if (!launch(i, FIRST_KEY + k, ns))
					return false;
			}
		}
		for (unsigned i = 0; i < DEVICES && contexts[i] != NULL; i++) {
			if (cuCtxSetCurrent(contexts[i]) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS)
				return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	uint64_t rounds, ns, at_once, processes;
	struct timespec from, to;
	char line[8];

	if (argc != 6 || !num_u64_str(argv[2], 100000, &rounds) || !num_u64_str(argv[3], 1000000000, &ns) ||
	    !num_u64_str(argv[4], 32, &at_once) || at_once == 0 || !num_u64_str(argv[5], 100, &processes))
		return 2;
	if (!start(argv[1]))
		return 1;
	printf("up\n");
	fflush(stdout);
	if (fgets(line, sizeof line, stdin) == NULL)
		return 1;
	if (virtual_time_meet != NULL)
		virtual_time_meet((unsigned)processes);
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (!run(rounds, ns, at_once))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%ld\n", (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
	return 0;
}
