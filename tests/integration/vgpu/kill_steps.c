/* kill-steps POINTS: run in a container under libvgpu, with 64 MiB of card 0. A child does one thing with the driver,
 * one instruction at a time, and is killed at one that is libvgpu's; then another process of the container, which lives
 * all the while, must have all of the limit at once. Again for each operation, at POINTS instructions spread over all
 * that libvgpu executes in it (0: at every one). A line for each operation: its name, libvgpu's instructions in it,
 * kills. Exit status 1: a fault, said on stderr. */
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda_api.h"
#include "abi/cuda_array.h"
#include "core/num.h"

#define DRIVER_CALLS                                                                                                   \
	X(cuInit)                                                                                                      \
	X(cuDevicePrimaryCtxRetain)                                                                                    \
	X(cuDevicePrimaryCtxReset_v2)                                                                                  \
	X(cuCtxSetCurrent)                                                                                             \
	X(cuMemGetInfo_v2)                                                                                             \
	X(cuMemAlloc_v2)                                                                                               \
	X(cuMemFree_v2)                                                                                                \
	X(cuMemAllocAsync)                                                                                             \
	X(cuMemFreeAsync)                                                                                              \
	X(cuStreamSynchronize)                                                                                         \
	X(cuMemAddressReserve)                                                                                         \
	X(cuMemCreate)                                                                                                 \
	X(cuMemRelease)                                                                                                \
	X(cuMemMap)                                                                                                    \
	X(cuMemUnmap)                                                                                                  \
	X(cuArrayCreate_v2)                                                                                            \
	X(cuArrayDestroy)
#include "harness/driver_calls.h"

enum { MIB = 1 << 20, LIMIT = 64 * MIB, ANSWER_MS = 10000 };

static CUdeviceptr held, place;
static CUmemGenericAllocationHandle handle;
static CUarray array;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "kill-steps: %s\n", what);
	_exit(1);
}

static void must(CUresult code, const char *what)
{
	if (code != CUDA_SUCCESS)
		fail(what);
}
#define MUST(call) must(call, #call)

static void load(void)
{
	const char *missing = driver_calls_load();

	if (missing != NULL)
		fail(missing);
}

static void start(void)
{
	CUcontext ctx;

	load();
	MUST(cuda.cuInit(0));
	MUST(cuda.cuDevicePrimaryCtxRetain(&ctx, 0));
	MUST(cuda.cuCtxSetCurrent(ctx));
}

static void attach(void)
{
	MUST(cuda.cuInit(0));
}

static void holds(size_t bytes)
{
	start();
	MUST(cuda.cuMemAlloc_v2(&held, bytes));
}

static void holds_large(void)
{
	holds(20 * MIB);
}

static void holds_small(void)
{
	holds(1000);
}

static void alloc_large(void)
{
	MUST(cuda.cuMemAlloc_v2(&held, 20 * MIB));
}

static void alloc_small(void)
{
	MUST(cuda.cuMemAlloc_v2(&held, 1000));
}

static void alloc_too_much(void)
{
	if (cuda.cuMemAlloc_v2(&held, 60 * MIB) != CUDA_ERROR_OUT_OF_MEMORY)
		fail("60 MiB beside 20");
}

static void free_it(void)
{
	MUST(cuda.cuMemFree_v2(held));
}

static void ask(void)
{
	size_t left, total;

	MUST(cuda.cuMemGetInfo_v2(&left, &total));
}

static void alloc_async(void)
{
	MUST(cuda.cuMemAllocAsync(&held, 3 * MIB, NULL));
}

static void holds_async(void)
{
	start();
	alloc_async();
}

static void free_async(void)
{
	MUST(cuda.cuMemFreeAsync(held, NULL));
	MUST(cuda.cuStreamSynchronize(NULL));
}

static void create(void)
{
	const CUmemAllocationProp prop = { .type = 1, .location = { .type = 1, .id = 0 } };

	MUST(cuda.cuMemCreate(&handle, 10 * MIB, &prop, 0));
}

static void holds_handle(void)
{
	start();
	MUST(cuda.cuMemAddressReserve(&place, 10 * MIB, 0, 0, 0));
	create();
}

static void map_and_release(void)
{
	MUST(cuda.cuMemMap(place, 10 * MIB, 0, handle, 0));
	MUST(cuda.cuMemRelease(handle));
	MUST(cuda.cuMemUnmap(place, 10 * MIB));
}

static void create_array(void)
{
	const CUDA_ARRAY_DESCRIPTOR desc = { .Width = 1024, .Height = 1024, .Format = 0x20, .NumChannels = 4 };

	MUST(cuda.cuArrayCreate_v2(&array, &desc));
}

static void array_comes_and_goes(void)
{
	create_array();
	MUST(cuda.cuArrayDestroy(array));
}

static void reset(void)
{
	MUST(cuda.cuDevicePrimaryCtxReset_v2(0));
}

static const struct operation {
	const char *name;
	void (*prepare)(void), (*act)(void);
} operations[] = {
	{ "attach", load, attach },
	{ "alloc", start, alloc_large },
	{ "alloc small", start, alloc_small },
	{ "alloc small in a page", holds_small, alloc_small },
	{ "refused", holds_large, alloc_too_much },
	{ "free", holds_large, free_it },
	{ "free small", holds_small, free_it },
	{ "query", holds_large, ask },
	{ "pool alloc", start, alloc_async },
	{ "pool free", holds_async, free_async },
	{ "create", start, create },
	{ "map, release, unmap", holds_handle, map_and_release },
	{ "array", start, array_comes_and_goes },
	{ "reset", holds_large, reset },
};

/* The other process: at each byte it asks for all there is, and says what came of it. */
static _Noreturn void survive(int requests, int answers)
{
	CUdeviceptr all;
	char byte;

	start();
	while (read(requests, &byte, 1) == 1) {
		CUresult code = cuda.cuMemAlloc_v2(&all, LIMIT);

		byte = code == CUDA_SUCCESS && cuda.cuMemFree_v2(all) == CUDA_SUCCESS ? 'y' : 'n';
		if (write(answers, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static bool all_is_free(int requests, int answers)
{
	struct pollfd answer = { .fd = answers, .events = POLLIN };
	char byte = '?';

	return write(requests, &byte, 1) == 1 && poll(&answer, 1, ANSWER_MS) == 1 && read(answers, &byte, 1) == 1 &&
	       byte == 'y';
}

struct range {
	uintptr_t from, to;
};

static int find_library(struct dl_phdr_info *info, size_t size, void *out)
{
	struct range *r = out;

	(void)size;
	if (strstr(info->dlpi_name, "libvgpu.so") == NULL)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0)
			*r = (struct range) { info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz };
	}
	return 1;
}

static uintptr_t instruction_of(pid_t child)
{
#ifdef __x86_64__
	return (uintptr_t)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), NULL);
#else
	(void)child;
	return 0;
#endif
}

static pid_t begin(const struct operation *o)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		o->prepare();
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		o->act();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		fail(o->name);
	return child;
}

/* Steps through the operation; killed before the target-th instruction of libvgpu. Returns how many of them it did. */
static unsigned long step(const struct operation *o, const struct range *library, unsigned long target)
{
	pid_t child = begin(o);
	unsigned long done = 0;
	int status;

	for (;;) {
		uintptr_t at = instruction_of(child);

		if (at >= library->from && at < library->to && ++done == target) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return done;
		}
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
		if (waitpid(child, &status, 0) != child)
			fail(o->name);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return done;
		if (!WIFSTOPPED(status))
			fail(o->name);
	}
}

static void kill_at_points(const struct operation *o, const struct range *library, unsigned long points, int requests,
			   int answers)
{
	unsigned long total = step(o, library, 0), kills = 0, stride = points == 0 ? 1 : total / points + 1;

	if (total == 0)
		fail(o->name);
	for (unsigned long at = 1; at <= total; at += stride, kills++) {
		step(o, library, at);
		if (all_is_free(requests, answers))
			continue;
		fprintf(stderr, "kill-steps: %s, killed before instruction %lu of %lu: not all came back\n", o->name,
			at, total);
		exit(1);
	}
	printf("%s: %lu instructions, %lu kills\n", o->name, total, kills);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int requests[2], answers[2];
	struct range library = { 0 };
	uint64_t points;

#ifndef __x86_64__
	fprintf(stderr, "kill-steps: knows the instruction pointer of x86-64 alone\n");
	return 77;
#endif
	if (argc != 2 || !num_u64_str(argv[1], 1000000, &points)) {
		fprintf(stderr, "usage: kill-steps POINTS\n");
		return 2;
	}
	if (dl_iterate_phdr(find_library, &library) != 1 || library.to == 0)
		fail("libvgpu.so is not preloaded");
	if (pipe(requests) < 0 || pipe(answers) < 0)
		fail("pipe");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		survive(requests[0], answers[1]);
	}
	for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
		kill_at_points(&operations[i], &library, points, requests[1], answers[0]);
	return 0;
}
