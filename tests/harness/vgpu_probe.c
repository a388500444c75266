/* vgpu-probe: a small CUDA driver-API program, the workload of demo and tests. It reaches the driver as the CUDA
 * runtime does: dlopen of libcuda.so.1, one dlsym of cuGetProcAddress_v2, everything else through that. Built a second
 * time with PROBE_LINKED it calls the driver's exported names instead.
 *
 * One line of JSON on stdout. Exit status: 0 it ran (whatever CUDA answered), 1 there is no CUDA, 2 usage. */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/cuda_api.h"
#include "harness/kernels_ptx.h"

#define MIB ((size_t)1 << 20)

/* X(field, exported name, base name, version): the triples that cudart 13 asks for. */
#define CALLS                                                                                                          \
	X(init, cuInit, "cuInit", 2000)                                                                                \
	X(error_name, cuGetErrorName, "cuGetErrorName", 6000)                                                          \
	X(count, cuDeviceGetCount, "cuDeviceGetCount", 2000)                                                           \
	X(device, cuDeviceGet, "cuDeviceGet", 2000)                                                                    \
	X(name, cuDeviceGetName, "cuDeviceGetName", 2000)                                                              \
	X(uuid, cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040)                                                          \
	X(total, cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020)                                                        \
	X(retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000)                                          \
	X(release, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000)                                   \
	X(set_current, cuCtxSetCurrent, "cuCtxSetCurrent", 4000)                                                       \
	X(synchronize, cuCtxSynchronize, "cuCtxSynchronize", 2000)                                                     \
	X(info, cuMemGetInfo_v2, "cuMemGetInfo", 3020)                                                                 \
	X(alloc, cuMemAlloc_v2, "cuMemAlloc", 3020)                                                                    \
	X(free, cuMemFree_v2, "cuMemFree", 3020)                                                                       \
	X(load, cuModuleLoadData, "cuModuleLoadData", 2000)                                                            \
	X(function, cuModuleGetFunction, "cuModuleGetFunction", 2000)                                                  \
	X(launch, cuLaunchKernel, "cuLaunchKernel", 4000)                                                              \
	X(event_create, cuEventCreate, "cuEventCreate", 2000)                                                          \
	X(event_record, cuEventRecord, "cuEventRecord", 2000)                                                          \
	X(event_elapsed, cuEventElapsedTime, "cuEventElapsedTime", 2000)

static struct {
#define X(field, symbol, base, version) __typeof__(&symbol) field;
	CALLS
#undef X
} cuda;

#ifdef PROBE_LINKED
static bool resolve(void)
{
#define X(field, symbol, base, version) cuda.field = symbol;
	CALLS
#undef X
	return true;
}
#else
static bool resolve_one(__typeof__(&cuGetProcAddress_v2) get, const char *base, int version, void *slot)
{
	CUdriverProcAddressQueryResult status = -1;
	void *address = NULL;

	if (get(base, &address, version, 0, &status) != CUDA_SUCCESS || address == NULL || status != 0) {
		printf("{\"error\": \"cuGetProcAddress does not know %s %d\"}\n", base, version);
		return false;
	}
	memcpy(slot, &address, sizeof address);
	return true;
}

static bool resolve(void)
{
	__typeof__(&cuGetProcAddress_v2) get;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	void *address = handle != NULL ? dlsym(handle, "cuGetProcAddress_v2") : NULL;

	if (handle == NULL) {
		printf("{\"error\": \"libcuda.so.1 cannot be loaded\"}\n");
		return false;
	}
	if (address == NULL) {
		printf("{\"error\": \"libcuda.so.1 has no cuGetProcAddress_v2\"}\n");
		return false;
	}
	memcpy(&get, &address, sizeof get);
#define X(field, symbol, base, version) &&resolve_one(get, base, version, &cuda.field)
	return true CALLS;
#undef X
}
#endif

static const char *code_name(CUresult code)
{
	const char *name = NULL;

	return cuda.error_name(code, &name) == CUDA_SUCCESS && name != NULL ? name : "?";
}

/* Text as a JSON string; NULL as null. */
static void put_text(const char *key, const char *text)
{
	printf("\"%s\": ", key);
	if (text == NULL) {
		printf("null");
		return;
	}
	putchar('"');
	for (; *text != '\0'; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	putchar('"');
}

static void put_code(CUresult code)
{
	printf("\"code\": %d, \"name\": \"%s\"", code, code_name(code));
}

/* ---- info */

static void put_uuid(CUdevice dev)
{
	CUuuid uuid;

	if (cuda.uuid(&uuid, dev) != CUDA_SUCCESS) {
		printf("\"uuid\": null");
		return;
	}
	printf("\"uuid\": \"GPU-");
	for (size_t i = 0; i < sizeof uuid.bytes; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid.bytes[i]);
	printf("\"");
}

static void put_device(int ordinal)
{
	size_t total = 0, free_bytes = 0, info_total = 0;
	char name[128] = "";
	CUcontext ctx;
	CUdevice dev;

	if (cuda.device(&dev, ordinal) != CUDA_SUCCESS)
		return;
	(void)cuda.name(name, sizeof name, dev);
	(void)cuda.total(&total, dev);
	CUresult rc = cuda.retain(&ctx, dev);

	if (rc == CUDA_SUCCESS)
		rc = cuda.set_current(ctx);
	if (rc == CUDA_SUCCESS)
		rc = cuda.info(&free_bytes, &info_total);
	printf("%s{", ordinal > 0 ? ", " : "");
	put_text("model", name);
	printf(", ");
	put_uuid(dev);
	printf(", \"total\": %zu, \"info_free\": %zu, \"info_total\": %zu, ", total, free_bytes, info_total);
	put_code(rc);
	printf("}");
}

struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*handle)(unsigned, void **);
	int (*memory)(void *, struct nvml_memory *);
	int (*uuid)(void *, char *, unsigned);
};

static bool nvml_open(struct nvml *n)
{
	static const char *const names[] = { "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
					     "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID" };
	void *const slots[] = { &n->init, &n->count, &n->handle, &n->memory, &n->uuid };
	void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	for (size_t i = 0; handle != NULL && i < 5; i++) {
		void *address = dlsym(handle, names[i]);

		if (address == NULL)
			return false;
		memcpy(slots[i], &address, sizeof address);
	}
	return handle != NULL && n->init() == 0;
}

static void put_nvml(void)
{
	struct nvml n;
	unsigned count = 0;

	if (!nvml_open(&n) || n.count(&count) != 0) {
		printf(", \"nvml\": null");
		return;
	}
	printf(", \"nvml\": {\"count\": %u, \"devices\": [", count);
	for (unsigned i = 0; i < count; i++) {
		struct nvml_memory m = { 0 };
		char uuid[96] = "";
		void *dev;

		if (n.handle(i, &dev) != 0)
			continue;
		(void)n.uuid(dev, uuid, sizeof uuid);
		(void)n.memory(dev, &m);
		printf("%s{\"uuid\": \"%s\", \"total\": %llu, \"used\": %llu, \"free\": %llu}", i > 0 ? ", " : "", uuid,
		       m.total, m.used, m.free);
	}
	printf("]}");
}

static int run_info(void)
{
	int count = 0;
	CUresult rc = cuda.count(&count);

	printf("{");
	put_text("HAMI_VGPU_UUID", getenv("HAMI_VGPU_UUID"));
	printf(", ");
	put_text("NVIDIA_VISIBLE_DEVICES", getenv("NVIDIA_VISIBLE_DEVICES"));
	printf(", ");
	put_code(rc);
	printf(", \"count\": %d, \"devices\": [", count);
	for (int i = 0; i < count; i++)
		put_device(i);
	printf("]");
	put_nvml();
	printf("}\n");
	return 0;
}

/* ---- memory */

static CUresult use_device_0(void)
{
	CUcontext ctx;
	CUresult rc = cuda.retain(&ctx, 0);

	return rc == CUDA_SUCCESS ? cuda.set_current(ctx) : rc;
}

/* Allocates chunks until `bytes` are there or one is refused; that code in *rc. */
static size_t take(size_t bytes, size_t chunk, CUresult *rc)
{
	size_t got = 0;

	*rc = CUDA_SUCCESS;
	while (got < bytes && *rc == CUDA_SUCCESS) {
		size_t n = bytes - got < chunk ? bytes - got : chunk;
		CUdeviceptr ptr;

		*rc = cuda.alloc(&ptr, n);
		if (*rc == CUDA_SUCCESS)
			got += n;
	}
	return got;
}

static void hold(double seconds, bool until_eof)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
	char byte;

	fflush(stdout);
	if (seconds > 0)
		nanosleep(&t, NULL);
	while (until_eof && read(STDIN_FILENO, &byte, 1) > 0)
		;
}

struct alloc_options {
	size_t bytes, chunk;
	double hold_seconds;
	bool until_eof;
};

static int run_alloc(const struct alloc_options *o)
{
	size_t got = 0;
	CUresult rc = use_device_0();

	if (rc == CUDA_SUCCESS)
		got = take(o->bytes, o->chunk, &rc);
	printf("{\"pid\": %d, \"requested\": %zu, \"allocated\": %zu, ", (int)getpid(), o->bytes, got);
	put_code(rc);
	printf("}\n");
	hold(o->hold_seconds, o->until_eof);
	return 0;
}

/* Allocates in ever smaller chunks until 2 MiB are refused: what is granted is exact to 2 MiB. */
static int run_fill(const struct alloc_options *o)
{
	size_t got = 0;
	CUresult rc = use_device_0();

	for (size_t chunk = 256 * MIB; rc == CUDA_SUCCESS || (rc == CUDA_ERROR_OUT_OF_MEMORY && chunk >= 2 * MIB);
	     chunk /= 2)
		got += take((size_t)-1, chunk, &rc);
	printf("{\"pid\": %d, \"granted\": %zu, ", (int)getpid(), got);
	put_code(rc);
	printf("}\n");
	hold(o->hold_seconds, o->until_eof);
	return 0;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int run_churn(long rounds)
{
	size_t before = 0, after = 0, total = 0;
	CUresult rc = use_device_0();
	double start = 0, end = 0;

	if (rc == CUDA_SUCCESS)
		rc = cuda.info(&before, &total);
	start = now_ns();
	for (long i = 0; i < rounds && rc == CUDA_SUCCESS; i++) {
		CUdeviceptr ptr;

		rc = cuda.alloc(&ptr, (size_t)(i % 4 + 1) * MIB);
		if (rc == CUDA_SUCCESS)
			rc = cuda.free(ptr);
	}
	end = now_ns();
	(void)cuda.info(&after, &total);
	printf("{\"rounds\": %ld, \"ns_per_round\": %.1f, \"free_before\": %zu, \"free_after\": %zu, ", rounds,
	       rounds > 0 ? (end - start) / (double)rounds : 0.0, before, after);
	put_code(rc);
	printf("}\n");
	return 0;
}

/* ---- two processes */

struct child {
	pid_t pid;
	int in, out; /* its stdin and stdout, our ends */
};

static bool child_start(struct child *c, const char *mib, const char *chunk)
{
	int in[2], out[2];

	if (pipe(in) < 0 || pipe(out) < 0)
		return false;
	c->pid = fork();
	if (c->pid < 0)
		return false;
	if (c->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execl("/proc/self/exe", "vgpu-probe", "alloc", mib, "--chunk", chunk, "--until-eof", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	return true;
}

/* The child's one line, without its end. */
static void child_line(const struct child *c, char *line, size_t cap)
{
	size_t n = 0;

	while (n + 1 < cap && read(c->out, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
}

/* Two processes at once, each taking as much; both hold until both have answered. */
static int run_pair(const char *mib, const char *chunk)
{
	struct child children[2];
	char lines[2][512];

	/* The second child must not hold the first one's stdin open, or it would never see its end. */
	for (int i = 0; i < 2; i++)
		if (!child_start(&children[i], mib, chunk)) {
			perror("vgpu-probe");
			return 2;
		}
	for (int i = 0; i < 2; i++)
		child_line(&children[i], lines[i], sizeof lines[i]);
	for (int i = 1; i >= 0; i--) { /* the second has a copy of the first one's stdin */
		close(children[i].in);
		waitpid(children[i].pid, NULL, 0);
	}
	printf("{\"processes\": [%s, %s]}\n", lines[0][0] != '\0' ? lines[0] : "null",
	       lines[1][0] != '\0' ? lines[1] : "null");
	return 0;
}

/* ---- compute */

static CUresult launch_all(unsigned long long ns, unsigned blocks, long count, float *ms)
{
	void *params[] = { &ns };
	CUevent start, end;
	CUmodule module;
	CUfunction busy;
	CUresult rc = cuda.load(&module, kernels_ptx);

	if (rc == CUDA_SUCCESS)
		rc = cuda.function(&busy, module, "busy_ns");
	if (rc == CUDA_SUCCESS)
		rc = cuda.event_create(&start, CU_EVENT_DEFAULT);
	if (rc == CUDA_SUCCESS)
		rc = cuda.event_create(&end, CU_EVENT_DEFAULT);
	if (rc == CUDA_SUCCESS)
		rc = cuda.event_record(start, NULL);
	for (long i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = cuda.launch(busy, blocks, 1, 1, 1024, 1, 1, 0, NULL, params, NULL);
	if (rc == CUDA_SUCCESS)
		rc = cuda.event_record(end, NULL);
	if (rc == CUDA_SUCCESS)
		rc = cuda.synchronize();
	return rc == CUDA_SUCCESS ? cuda.event_elapsed(ms, start, end) : rc;
}

static int run_launch(unsigned long long ns, unsigned blocks, long count)
{
	float ms = 0;
	CUresult rc = use_device_0();
	double start = now_ns();

	if (rc == CUDA_SUCCESS)
		rc = launch_all(ns, blocks, count, &ms);
	printf("{\"launches\": %ld, \"gpu_ms\": %.6f, \"wall_ms\": %.3f, ", count, (double)ms,
	       (now_ns() - start) / 1e6);
	put_code(rc);
	printf("}\n");
	return 0;
}

static int usage(void)
{
	fputs("usage: vgpu-probe info\n"
	      "       vgpu-probe alloc MIB [--chunk MIB] [--hold SECONDS] [--until-eof]\n"
	      "       vgpu-probe fill [--hold SECONDS] [--until-eof]\n"
	      "       vgpu-probe pair MIB [--chunk MIB]\n"
	      "       vgpu-probe churn ROUNDS\n"
	      "       vgpu-probe launch NANOSECONDS BLOCKS COUNT\n",
	      stderr);
	return 2;
}

/* A whole argument as a number; -1 where it is none. */
static long number(const char *text)
{
	long v = 0;

	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || v > LONG_MAX / 10 - 1)
			return -1;
		v = v * 10 + (*text - '0');
	}
	return v;
}

int main(int argc, char **argv)
{
	struct alloc_options o = { 0 };
	const char *what = argc > 1 ? argv[1] : "", *chunk = NULL, *first = NULL;
	long args[3] = { -1, -1, -1 };
	int count = 0;

	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--until-eof") == 0)
			o.until_eof = true;
		else if (strcmp(argv[i], "--hold") == 0 && i + 1 < argc)
			o.hold_seconds = strtod(argv[++i], NULL);
		else if (strcmp(argv[i], "--chunk") == 0 && i + 1 < argc && number(argv[i + 1]) > 0)
			chunk = argv[++i];
		else if (count < 3 && number(argv[i]) >= 0) {
			first = count == 0 ? argv[i] : first;
			args[count++] = number(argv[i]);
		} else
			return usage();
	bool info = strcmp(what, "info") == 0 && count == 0, fill = strcmp(what, "fill") == 0 && count == 0;
	bool alloc = strcmp(what, "alloc") == 0 && count == 1, pair = strcmp(what, "pair") == 0 && count == 1;
	bool churn = strcmp(what, "churn") == 0 && count == 1, launch = strcmp(what, "launch") == 0 && count == 3;

	if (!info && !fill && !alloc && !pair && !churn && !launch)
		return usage();
	if (pair) /* before CUDA is there: a forked child could not use it */
		return run_pair(first, chunk != NULL ? chunk : first);
	if (!resolve())
		return 1;
	CUresult rc = cuda.init(0);

	if (rc != CUDA_SUCCESS) {
		printf("{\"error\": \"cuInit\", ");
		put_code(rc);
		printf("}\n");
		return 1;
	}
	o.bytes = (size_t)args[0] * MIB;
	o.chunk = chunk != NULL ? (size_t)number(chunk) * MIB : o.bytes;
	return info    ? run_info()
	       : alloc ? run_alloc(&o)
	       : fill  ? run_fill(&o)
	       : churn ? run_churn(args[0])
		       : run_launch((unsigned long long)args[0], (unsigned)args[1], args[2]);
}
