/* What happens between processes: before cuInit, after fork, at death, with two at once, and with a card lost. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"
#include "fixture.h"

/* Runs in a child and gives back what it returned, 0 to 255. */
static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int call_everything(void)
{
	CUdeviceptr ptr;
	CUcontext ctx;
	int n;

	if (cuDeviceGetCount(&n) != CUDA_ERROR_NOT_INITIALIZED || cuDevicePrimaryCtxRetain(&ctx, 0) != 3)
		return 1;
	return cuMemAlloc_v2(&ptr, 1) != 3 || cuMemFree_v2(1) != 3 || cuCtxSynchronize() != 3 ||
	       cuStreamQuery(NULL) != 3;
}

static void before_init(void **state HM_UNUSED)
{
	int version = 0;

	assert_int_equal(call_everything(), 0);
	assert_cuda(cuDriverGetVersion(&version));
	assert_int_equal(version, 13000);
	assert_int_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

static int count_of_devices(void)
{
	int n = 0;
	CUresult rc = cuInit(0);

	if (rc != CUDA_SUCCESS)
		return rc;
	return cuDeviceGetCount(&n) == CUDA_SUCCESS ? 10 + n : 99;
}

/* A child of a process that has not called cuInit is free to. */
static void visible_devices(void **state HM_UNUSED)
{
	static const struct {
		const char *runtime, *cuda;
		int want; /* 10 + devices, or cuInit's code */
	} cases[] = {
		{ NULL, NULL, 12 },
		{ NULL, "", CUDA_ERROR_NO_DEVICE },
		{ NULL, "1", 11 },
		{ NULL, "1,0", 12 },
		{ NULL, "1,1,0", 11 },
		{ NULL, "0,9,1", 11 },
		{ NULL, "-1", CUDA_ERROR_NO_DEVICE },
		{ NULL, "GPU-c2a4", 11 },
		{ NULL, "GPU-c2a4,GPU-6b7e0d5c-1f0e-4d0a-9a55-3c1f5a2b7e01", 12 },
		{ NULL, "GPU-ffff", CUDA_ERROR_NO_DEVICE },
		{ "all", NULL, 12 },
		{ "none", NULL, CUDA_ERROR_NO_DEVICE },
		{ "GPU-c2a4f1d8-92b3-4f7c-8e10-7d4b9e6a1f02", NULL, 11 },
		{ "1", "0", 11 }, /* the second card is the container's first */
		{ "1", "1", CUDA_ERROR_NO_DEVICE },
	};

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		if (cases[i].runtime != NULL)
			setenv("NVIDIA_VISIBLE_DEVICES", cases[i].runtime, 1);
		if (cases[i].cuda != NULL)
			setenv("CUDA_VISIBLE_DEVICES", cases[i].cuda, 1);
		print_message("case %zu\n", i);
		assert_int_equal(in_child(count_of_devices), cases[i].want);
		unsetenv("NVIDIA_VISIBLE_DEVICES");
		unsetenv("CUDA_VISIBLE_DEVICES");
	}
}

static void no_node(void **state HM_UNUSED)
{
	char *dir = strdup(getenv("HAMI_SIM_DIR"));

	setenv("HAMI_SIM_DIR", "/nonexistent", 1);
	assert_int_equal(in_child(count_of_devices), CUDA_ERROR_NO_DEVICE);
	unsetenv("HAMI_SIM_DIR");
	assert_int_equal(in_child(count_of_devices), CUDA_ERROR_NO_DEVICE);
	setenv("HAMI_SIM_DIR", dir, 1);
	free(dir);
}

static int after_fork(void)
{
	int n = cuInit(0);

	return n != CUDA_ERROR_NOT_INITIALIZED ? 100 : call_everything();
}

static void fork_after_init(void **state HM_UNUSED)
{
	CUdeviceptr ptr;

	assert_cuda(cuInit(0));
	context_up(NULL);
	assert_cuda(cuMemAlloc_v2(&ptr, 10 * MIB));
	assert_int_equal(in_child(after_fork), 0);
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB); /* the child's end took nothing along */
	assert_cuda(cuMemFree_v2(ptr));
	context_down(NULL);
}

static void wait_for_free(size_t want)
{
	for (int i = 0; i < 500 && free_bytes() != want; i++)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
	assert_int_equal(free_bytes(), want);
}

/* A killed process's memory comes back, context and all; one that ends by itself the same. */
static void death_frees(void **state HM_UNUSED)
{
	char line[512];

	context_up(NULL);
	for (int killed = 0; killed < 2; killed++) {
		struct program p;

		program_start(&p, PROBE_PATH, (const char *const[]) { "alloc", "300", "--until-eof", NULL });
		program_line(&p, line, sizeof line);
		assert_non_null(strstr(line, "\"code\": 0"));
		assert_int_equal(free_bytes(), ROOM_BYTES - 300 * MIB - CONTEXT_BYTES);
		if (killed)
			kill(p.pid, SIGKILL);
		assert_int_equal(program_end(&p), killed ? -SIGKILL : 0);
		wait_for_free(ROOM_BYTES);
	}
	context_down(NULL);
}

/* Two processes share the card to the page: 1000 MiB, of which 100 go to each context and 100 to ours. */
static void two_share(void **state HM_UNUSED)
{
	struct program a, b;
	char line[512];

	context_up(NULL);
	program_start(&a, PROBE_PATH, (const char *const[]) { "alloc", "400", "--until-eof", NULL });
	program_line(&a, line, sizeof line);
	assert_non_null(strstr(line, "\"code\": 0"));
	program_start(&b, PROBE_PATH, (const char *const[]) { "fill", "--until-eof", NULL });
	program_line(&b, line, sizeof line);
	char want[64];

	snprintf(want, sizeof want, "\"granted\": %zu, \"code\": 2", 300 * MIB);
	assert_non_null(strstr(line, want));
	assert_int_equal(free_bytes(), 0);
	program_end(&a);
	program_end(&b);
	wait_for_free(ROOM_BYTES);
	context_down(NULL);
}

static void run_probe(const char *const *args, const char *want)
{
	struct program p;
	char line[2048];

	program_start(&p, PROBE_PATH, args);
	program_line(&p, line, sizeof line);
	assert_int_equal(program_end(&p), 0);
	assert_non_null(strstr(line, want));
}

/* When a process has been waited for its memory is free, at once: to who starts then, and to who was there. */
static void one_after_another(void **state HM_UNUSED)
{
	CUdeviceptr ptr;
	char want[64];

	context_up(NULL);
	snprintf(want, sizeof want, "\"info_free\": %zu", ROOM_BYTES - CONTEXT_BYTES);
	for (int i = 0; i < 40; i++) {
		run_probe((const char *const[]) { "alloc", "700", NULL }, "\"code\": 0");
		run_probe((const char *const[]) { "info", NULL }, want);
		run_probe((const char *const[]) { "alloc", "700", NULL }, "\"code\": 0");
		assert_cuda(cuMemAlloc_v2(&ptr, ROOM_BYTES));
		assert_cuda(cuMemFree_v2(ptr));
	}
	context_down(NULL);
}

/* The other program forms: dlopen and cuGetProcAddress, or linked. */
static void probe_info(void **state HM_UNUSED)
{
	static const char *const paths[] = { PROBE_PATH, PROBE_LINKED_PATH };

	context_up(NULL);
	for (size_t i = 0; i < HM_COUNT(paths); i++) {
		struct program p;
		char line[2048];

		program_start(&p, paths[i], (const char *const[]) { "info", NULL });
		program_line(&p, line, sizeof line);
		assert_int_equal(program_end(&p), 0);
		assert_non_null(strstr(line, "\"count\": 2"));
		assert_non_null(strstr(line, "GPU-c2a4f1d8-92b3-4f7c-8e10-7d4b9e6a1f02"));
		assert_non_null(strstr(line, "\"total\": 1048576000"));
	}
	wait_for_free(ROOM_BYTES);
	context_down(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_init),       cmocka_unit_test(visible_devices), cmocka_unit_test(no_node),
		cmocka_unit_test(fork_after_init), /* from here on cuInit has been called */
		cmocka_unit_test(death_frees),       cmocka_unit_test(two_share),       cmocka_unit_test(probe_info),
		cmocka_unit_test(one_after_another),
	};
	return cmocka_run_group_tests(tests, node_up, node_down);
}
