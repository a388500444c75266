/* guest-tricks TRICK [HOW]: what programs do to themselves that a library in front of the driver must bear: odd ways to
 * make processes, odd ways to end, system calls that are forbidden. Run in a container with 64 MiB of card 0. What a
 * trick prints, its test knows. Exit status: the trick's; 1: a call failed that should not, said on stderr. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/kernels_ptx.h"

#define DRIVER_CALLS                                                                                                   \
	X(cuInit)                                                                                                      \
	X(cuDeviceTotalMem_v2)                                                                                         \
	X(cuDevicePrimaryCtxRetain)                                                                                    \
	X(cuCtxSetCurrent)                                                                                             \
	X(cuMemGetInfo_v2)                                                                                             \
	X(cuMemAlloc_v2)                                                                                               \
	X(cuMemFree_v2)                                                                                                \
	X(cuModuleLoadData)                                                                                            \
	X(cuModuleGetFunction)                                                                                         \
	X(cuLaunchKernel)
#include "harness/driver_calls.h"

enum { MIB = 1 << 20, THREADS = 8, RACERS = 64 };

static CUcontext context;
static CUdeviceptr held;
static const char *self;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "guest-tricks: %s\n", what);
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
	load();
	MUST(cuda.cuInit(0));
	MUST(cuda.cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuda.cuCtxSetCurrent(context));
}

static CUresult alloc(unsigned mib)
{
	return cuda.cuMemAlloc_v2(&held, (size_t)mib * MIB);
}

static unsigned used_mib(void)
{
	size_t left, total;

	MUST(cuda.cuMemGetInfo_v2(&left, &total));
	return (unsigned)((total - left) / MIB);
}

/* What a new image finds: MiB in use, whether 50 MiB can be had, then whether 44. */
static int asks(void)
{
	unsigned used;
	int fifty, less;

	start();
	used = used_mib();
	fifty = (int)alloc(50);
	less = fifty == CUDA_SUCCESS ? 0 : (int)alloc(44);
	printf("%u %d %d\n", used, fifty, less);
	return 0;
}

static void exec_asks(void)
{
	execl(self, self, "asks", NULL);
	_exit(1);
}

static int vforks(void)
{
	pid_t child;
	int status;

	start();
	MUST(alloc(20));
	child = vfork();
	if (child == 0)
		exec_asks();
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child of vfork");
	printf("%u\n", used_mib());
	return 0;
}

static volatile bool stop;

static void *allocates(void *arg)
{
	CUdeviceptr p;

	MUST(cuda.cuCtxSetCurrent(context));
	while (!stop) {
		if (cuda.cuMemAlloc_v2(&p, MIB) == CUDA_SUCCESS)
			cuda.cuMemFree_v2(p);
	}
	return arg;
}

static void *becomes_another(void *arg)
{
	usleep(20000);
	exec_asks();
	return arg;
}

static void run(void *(*f)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, f, NULL) != 0 || pthread_detach(t) != 0)
		fail("pthread_create");
}

/* The image changes while the others are in the middle of calls; their charge is the old image's. */
static int execs_in_a_thread(void)
{
	start();
	MUST(alloc(50));
	for (int i = 0; i < THREADS; i++)
		run(allocates);
	run(becomes_another);
	pause();
	return 1;
}

/* A child that is number 1 of a pid namespace of its own takes what is left and is killed with it. */
static int leaves_the_namespace(void)
{
	int ready[2], status;
	pid_t child;
	char byte;

	if (pipe(ready) < 0)
		fail("pipe");
	child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0 && errno == EPERM)
		return 77;
	if (child == 0) {
		start();
		byte = getpid() == 1 && alloc(50) == CUDA_SUCCESS ? 'y' : 'n';
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	start();
	if (read(ready[0], &byte, 1) != 1 || byte != 'y')
		fail("the child in a pid namespace");
	printf("%u %d\n", used_mib(), (int)alloc(20));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	printf("%d\n", (int)alloc(14));
	fflush(stdout);
	/* The rest is for whoever sees both namespaces: the agent. */
	if (read(0, &byte, 1) < 0)
		fail("read");
	printf("%d\n", (int)alloc(50));
	return 0;
}

static pthread_barrier_t all;
static _Atomic unsigned agreed;

static void *is_first(void *arg)
{
	size_t total = 0;

	pthread_barrier_wait(&all);
	if (cuda.cuInit(0) == CUDA_SUCCESS && cuda.cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == 64 * MIB)
		agreed++;
	return arg;
}

static int races_at_first_use(void)
{
	pthread_t t[RACERS];

	load();
	pthread_barrier_init(&all, NULL, RACERS);
	for (int i = 0; i < RACERS; i++)
		pthread_create(&t[i], NULL, is_first, NULL);
	for (int i = 0; i < RACERS; i++)
		pthread_join(t[i], NULL);
	printf("%u\n", agreed);
	return 0;
}

static void *launches(void *arg)
{
	uint64_t ns = 2000000;
	void *params[] = { &ns };
	CUfunction function;
	CUmodule module;

	MUST(cuda.cuCtxSetCurrent(context));
	MUST(cuda.cuModuleLoadData(&module, kernels_ptx));
	MUST(cuda.cuModuleGetFunction(&function, module, "busy_ns"));
	while (!stop)
		cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	return arg;
}

static void calls_at_the_end(void)
{
	size_t left, total;
	CUdeviceptr p;

	cuda.cuMemGetInfo_v2(&left, &total);
	if (cuda.cuMemAlloc_v2(&p, MIB) == CUDA_SUCCESS)
		cuda.cuMemFree_v2(p);
	cuda.cuMemFree_v2(held);
}

static bool ends_late;

static __attribute__((destructor)) void last_words(void)
{
	if (ends_late)
		calls_at_the_end();
}

static void end(const char *how)
{
	if (strcmp(how, "exit") == 0)
		exit(3);
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(3);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "pthread_exit") == 0)
		pthread_exit(NULL);
}

/* The main thread ends while others are in calls, some of them waiting for their share of the card; handlers of exit
 * and destructors call the driver once more. */
static int ends(const char *how)
{
	atexit(calls_at_the_end);
	at_quick_exit(calls_at_the_end);
	start();
	MUST(alloc(20));
	ends_late = true;
	for (int i = 0; i < THREADS / 2; i++) {
		run(allocates);
		run(launches);
	}
	usleep(100000);
	if (strcmp(how, "pthread_exit") == 0)
		stop = true;
	end(how);
	return 3;
}

/* Denied from here on, with EPERM: all that libvgpu asks of the kernel, but not what the simulated driver does. */
static void forbid(void)
{
	static const int denied[] = { SYS_openat,  SYS_fcntl,   SYS_kill,       SYS_readlinkat,
				      SYS_madvise, SYS_pread64, SYS_sched_yield };
	struct sock_filter program[2 * sizeof denied / sizeof denied[0] + 2], *p = program;
	struct sock_fprog filter = { .filter = program };

	*p++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++) {
		*p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)denied[i], 0, 1);
		*p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	*p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = (unsigned short)(p - program);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		fail("seccomp");
}

static int is_forbidden_things(void)
{
	start();
	MUST(alloc(40));
	forbid();
	printf("%d ", (int)alloc(30));
	printf("%d ", (int)alloc(20));
	printf("%d\n", (int)cuda.cuMemFree_v2(held));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
		int (*run_how)(const char *how);
	} tricks[] = {
		{ "asks", asks, NULL },
		{ "vfork", vforks, NULL },
		{ "exec-in-a-thread", execs_in_a_thread, NULL },
		{ "pid-namespace", leaves_the_namespace, NULL },
		{ "first-use", races_at_first_use, NULL },
		{ "ends", NULL, ends },
		{ "seccomp", is_forbidden_things, NULL },
	};

	self = argv[0];
	for (size_t i = 0; argc > 1 && i < sizeof tricks / sizeof tricks[0]; i++) {
		if (strcmp(argv[1], tricks[i].name) == 0)
			return argc > 2 ? tricks[i].run_how(argv[2]) : tricks[i].run();
	}
	fprintf(stderr, "usage: guest-tricks TRICK [HOW]\n");
	return 2;
}
