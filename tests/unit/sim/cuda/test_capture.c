#include <pthread.h>
#include <string.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"

static CUmodule module;
static CUfunction busy;
static CUstream s, other, blocking;

static int up(void **state)
{
	context_up(state);
	assert_cuda(cuModuleLoadData(&module, kernels_ptx));
	assert_cuda(cuModuleGetFunction(&busy, module, "busy_ns"));
	assert_cuda(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&blocking, 0));
	return 0;
}

static int down(void **state)
{
	assert_cuda(cuStreamDestroy_v2(s));
	assert_cuda(cuStreamDestroy_v2(other));
	assert_cuda(cuStreamDestroy_v2(blocking));
	assert_cuda(cuModuleUnload(module));
	assert_cuda(cuDeviceGraphMemTrim(0));
	return context_down(state);
}

static CUresult launch(CUstream stream)
{
	uint64_t ns = 1000;
	void *params[] = { &ns };

	return cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static void begin(CUstream stream, CUstreamCaptureMode mode)
{
	assert_cuda(cuStreamBeginCapture_v2(stream, mode));
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
	CUstreamCaptureStatus status = 9;

	assert_cuda(cuStreamIsCapturing(stream, &status));
	return status;
}

static size_t nodes_of(CUgraph g)
{
	size_t n = 0;

	assert_cuda(cuGraphGetNodes(g, NULL, &n));
	return n;
}

static CUgraph end(CUstream stream, size_t want)
{
	CUgraph g = NULL;

	assert_cuda(cuStreamEndCapture(stream, &g));
	assert_non_null(g);
	assert_int_equal(nodes_of(g), want);
	assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	return g;
}

static void end_spoilt(CUstream stream, CUresult want)
{
	CUgraph g = (CUgraph)(uintptr_t)1;

	assert_int_equal(cuStreamEndCapture(stream, &g), want);
	assert_null(g);
	assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Nothing is allocated and nothing runs until the graph is launched. */
static void work_becomes_nodes(void **state HM_UNUSED)
{
	unsigned char got = 0, from = 5;
	CUdeviceptr ptr = 0, plain;
	CUgraphExec x;

	assert_cuda(cuMemAlloc_v2(&plain, MIB));
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_int_equal(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_cuda(cuMemAllocAsync(&ptr, 10 * MIB, s));
	assert_int_not_equal(ptr, 0);
	assert_cuda(cuMemsetD8Async(ptr, 9, 4, s));
	assert_cuda(cuMemcpyHtoDAsync_v2(ptr + 1, &from, 1, s));
	assert_cuda(launch(s));
	assert_cuda(cuMemcpyDtoHAsync_v2(&got, ptr + 1, 1, s));
	assert_int_equal(cuMemFreeAsync(plain, s), CUDA_ERROR_INVALID_VALUE); /* no graph's */
	assert_cuda(cuMemFreeAsync(ptr, s));
	assert_int_equal(cuMemFreeAsync(ptr, s), CUDA_ERROR_INVALID_VALUE);
	CUgraph g = end(s, 6);

	assert_int_equal(got, 0);
	assert_int_equal(free_bytes(), ROOM_BYTES - PAGE);
	assert_cuda(cuGraphInstantiateWithFlags(&x, g, 0));
	from = 6; /* read when it runs */
	assert_cuda(cuGraphLaunch(x, s));
	assert_int_equal(got, 6);
	assert_int_equal(free_bytes(), ROOM_BYTES - PAGE - 10 * MIB);
	assert_cuda(cuStreamSynchronize(s));
	assert_cuda(cuGraphExecDestroy(x));
	assert_cuda(cuGraphDestroy(g));
	assert_cuda(cuMemFree_v2(plain));
}

static CUdeviceptr memory;
static CUevent event;
static void *host;

static CUresult alloc(void)
{
	CUdeviceptr p;

	return cuMemAlloc_v2(&p, 1);
}
static CUresult alloc_pitch(void)
{
	CUdeviceptr p;
	size_t pitch;

	return cuMemAllocPitch_v2(&p, &pitch, 4, 4, 4);
}
static CUresult alloc_managed(void)
{
	CUdeviceptr p;

	return cuMemAllocManaged(&p, 1, CU_MEM_ATTACH_GLOBAL);
}
static CUresult alloc_array(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = { 4, 4, CU_AD_FORMAT_FLOAT, 1 };
	CUarray a;

	return cuArrayCreate_v2(&a, &desc);
}
static CUresult alloc_mipmap(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
	CUmipmappedArray a;

	return cuMipmappedArrayCreate(&a, &desc, 1);
}
static CUresult alloc_host(void)
{
	void *p;

	return cuMemHostAlloc(&p, 1, 0);
}
static CUresult free_it(void)
{
	return cuMemFree_v2(memory);
}
static CUresult free_host(void)
{
	return cuMemFreeHost(host);
}
static CUresult register_host(void)
{
	static char page[4096];

	return cuMemHostRegister_v2(page, sizeof page, 0);
}
static CUresult load(void)
{
	CUmodule m;

	return cuModuleLoadData(&m, kernels_ptx);
}
static CUresult unload(void)
{
	return cuModuleUnload(module);
}
static CUresult query_event(void)
{
	return cuEventQuery(event);
}
static CUresult wait_event(void)
{
	return cuEventSynchronize(event);
}
static CUresult query_other(void)
{
	return cuStreamQuery(other);
}
static CUresult wait_other(void)
{
	return cuStreamSynchronize(other);
}
static CUresult wait_context(void)
{
	return cuCtxSynchronize();
}
static CUresult copy(void)
{
	char c = 0;

	return cuMemcpyHtoD_v2(memory, &c, 1);
}
static CUresult fill(void)
{
	return cuMemsetD8_v2(memory, 1, 1);
}

static CUresult (*const unsafe[])(void) = {
	alloc,      alloc_pitch, alloc_managed, alloc_array,  alloc_mipmap, alloc_host,
	free_it,    free_host,   register_host, load,         unload,       query_event,
	wait_event, query_other, wait_other,    wait_context, copy,         fill,
};

static void make_targets(void)
{
	assert_cuda(cuMemAlloc_v2(&memory, MIB));
	assert_cuda(cuMemHostAlloc(&host, 1, 0));
	assert_cuda(cuEventCreate(&event, 0));
	assert_cuda(cuEventRecord(event, other));
}

static void drop_targets(void)
{
	assert_cuda(cuMemFree_v2(memory));
	assert_cuda(cuMemFreeHost(host));
	assert_cuda(cuEventDestroy_v2(event));
}

static void unsafe_calls(void **state HM_UNUSED)
{
	make_targets();
	for (size_t i = 0; i < HM_COUNT(unsafe); i++) {
		print_message("call %zu\n", i);
		begin(s, i % 2 == 0 ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
		assert_cuda(launch(s));
		assert_int_equal(unsafe[i](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
		assert_int_equal(launch(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		end_spoilt(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	}
	drop_targets();
}

/* What only asks, and what belongs to other streams, leaves a capture alone. */
static void safe_calls(void **state HM_UNUSED)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUmemoryPool pool;
	CUdevice dev;
	CUdeviceptr ptr;
	cuuint64_t value;
	int answer;

	make_targets();
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(launch(s));
	(void)free_bytes(); /* cuMemGetInfo */
	assert_cuda(cuCtxGetDevice(&dev));
	assert_cuda(cuPointerGetAttribute(&answer, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	assert_cuda(cuDeviceGetDefaultMemPool(&pool, 0));
	assert_cuda(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
	assert_cuda(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
	assert_int_equal(status_of(NULL), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_cuda(launch(other)); /* runs */
	assert_cuda(launch(NULL));  /* the legacy stream, which no blocking stream that captures waits for */
	assert_cuda(cuMemAllocAsync(&ptr, MIB, other));
	assert_cuda(cuMemFreeAsync(ptr, other));
	assert_cuda(cuEventRecord(event, other));
	assert_cuda(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuMemAlloc_v2(&ptr, MIB)); /* a relaxed thread may */
	assert_cuda(cuMemFree_v2(ptr));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); /* but this never */
	assert_cuda(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	end_spoilt(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(s, CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_cuda(cuCtxSynchronize());
	assert_cuda(launch(s));
	assert_cuda(cuGraphDestroy(end(s, 1)));
	drop_targets();
}

struct thread_case {
	CUstreamCaptureMode capture, thread;
	CUresult want;
};

static void *in_thread(void *arg)
{
	struct thread_case *c = arg;
	CUcontext ctx;
	CUdeviceptr p;
	CUgraph g;

	if (cuDevicePrimaryCtxRetain(&ctx, 0) != CUDA_SUCCESS || cuCtxSetCurrent(ctx) != CUDA_SUCCESS ||
	    cuThreadExchangeStreamCaptureMode(&c->thread) != CUDA_SUCCESS)
		return NULL;
	CUresult rc = cuMemAlloc_v2(&p, MIB);

	if (rc == CUDA_SUCCESS)
		cuMemFree_v2(p);
	/* Not from another thread, unless relaxed; then it is over. */
	CUresult ended =
		c->capture == CU_STREAM_CAPTURE_MODE_RELAXED ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;

	if (cuStreamEndCapture(s, &g) != ended || cuDevicePrimaryCtxRelease_v2(0) != CUDA_SUCCESS)
		return NULL;
	if (ended == CUDA_SUCCESS)
		cuGraphDestroy(g);
	return rc == c->want ? c : NULL;
}

static void other_threads(void **state HM_UNUSED)
{
	struct thread_case cases[] = {
		{ CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED },
		{ CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_SUCCESS },
		{ CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS },
		{ CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS },
		{ CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS },
	};

	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		pthread_t thread;
		void *done = NULL;
		CUgraph g;

		print_message("case %zu\n", i);
		begin(s, cases[i].capture);
		assert_int_equal(pthread_create(&thread, NULL, in_thread, &cases[i]), 0);
		assert_int_equal(pthread_join(thread, &done), 0);
		assert_non_null(done);
		if (cases[i].capture == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		assert_int_equal(cuStreamEndCapture(s, &g),
				 cases[i].want == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		if (g != NULL)
			assert_cuda(cuGraphDestroy(g));
	}
}

/* The legacy stream waits for blocking streams, and what waits for a capture cannot run. */
static void legacy_stream(void **state HM_UNUSED)
{
	CUstreamCaptureStatus status;
	CUdeviceptr p;

	assert_int_equal(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_int_equal(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE); /* asking spoils nothing */
	assert_int_equal(launch(NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(status_of(blocking), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	end_spoilt(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_int_equal(cuMemAllocAsync(&p, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_spoilt(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_int_equal(cuMemsetD8_v2(1, 1, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_spoilt(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* The thread's default stream can capture, by each of its names. */
	assert_cuda(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(status_of(CU_STREAM_PER_THREAD), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_cuda(cuMemAllocAsync_ptsz(&p, MIB, NULL));
	assert_cuda(cuMemFreeAsync_ptsz(p, NULL));
	assert_cuda(cuGraphDestroy(end(CU_STREAM_PER_THREAD, 2)));
}

/* Another stream joins by an event and must be joined again. */
static void fork_and_join(void **state HM_UNUSED)
{
	CUevent forked, joined;
	CUgraph g;

	assert_cuda(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
	assert_cuda(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
	for (int join = 0; join < 2; join++) {
		begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
		assert_cuda(launch(s));
		assert_cuda(cuEventRecord(forked, s));
		assert_int_equal(cuEventQuery(forked), CUDA_ERROR_CAPTURED_EVENT);
		assert_int_equal(cuEventSynchronize(forked), CUDA_ERROR_CAPTURED_EVENT);
		assert_cuda(cuStreamWaitEvent(other, forked, 0));
		assert_int_equal(status_of(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
		assert_cuda(launch(other));
		assert_cuda(launch(s));
		if (join) {
			assert_cuda(cuEventRecord(joined, other));
			assert_cuda(cuStreamWaitEvent(s, joined, 0));
			assert_cuda(cuGraphDestroy(end(s, 3)));
		} else {
			end_spoilt(s, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
		}
		assert_int_equal(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
	}
	/* An event stands for the capture it was recorded in, also when that is over; until it is recorded again. */
	float ms;

	assert_int_equal(cuStreamWaitEvent(other, joined, 0), CUDA_ERROR_CAPTURED_EVENT);
	assert_int_equal(cuEventQuery(joined), CUDA_ERROR_CAPTURED_EVENT);
	assert_cuda(cuEventRecord(joined, other));
	assert_cuda(cuEventQuery(joined));
	assert_int_equal(cuEventElapsedTime(&ms, joined, joined), CUDA_ERROR_INVALID_HANDLE); /* without timing */
	/* Ended where it did not begin; then where it did. */
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(launch(s));
	assert_cuda(cuEventRecord(forked, s));
	assert_cuda(cuStreamWaitEvent(other, forked, 0));
	assert_int_equal(cuStreamEndCapture(other, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	end_spoilt(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* An event from outside, and one of another capture. */
	assert_cuda(cuEventRecord(joined, other));
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_int_equal(cuStreamWaitEvent(s, joined, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	end_spoilt(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	begin(other, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuEventRecord(joined, other));
	assert_int_equal(cuStreamWaitEvent(s, joined, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	end_spoilt(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_cuda(cuGraphDestroy(end(other, 0)));
	assert_cuda(cuEventDestroy_v2(forked));
	assert_cuda(cuEventDestroy_v2(joined));
}

static void information(void **state HM_UNUSED)
{
	CUstreamCaptureStatus status = 9;
	const CUgraphEdgeData *edges = (const CUgraphEdgeData *)(uintptr_t)1;
	const CUgraphNode *deps;
	CUgraphNode mine, list[3];
	CUgraph g = NULL, made;
	cuuint64_t id = 0, again = 0;
	size_t n = 9;

	assert_cuda(cuStreamBeginCapture(s));
	assert_int_equal(cuStreamBeginCapture(s), CUDA_ERROR_ILLEGAL_STATE);
	assert_cuda(cuStreamGetCaptureInfo(s, &status, &id));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_cuda(cuStreamGetCaptureInfo_v2(s, &status, &again, &g, &deps, &n));
	assert_int_equal(again, id);
	assert_int_equal(n, 0);
	assert_cuda(launch(s));
	assert_cuda(cuStreamGetCaptureInfo_v3(s, &status, NULL, NULL, &deps, &edges, &n));
	assert_int_equal(n, 1);
	assert_null(edges);
	/* A node put in by hand between two captured ones. */
	assert_cuda(cuGraphAddEmptyNode(&mine, g, deps, n));
	assert_cuda(cuStreamUpdateCaptureDependencies(s, &mine, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	assert_cuda(cuStreamGetCaptureInfo_v2(s, &status, NULL, NULL, &deps, &n));
	assert_int_equal(n, 1);
	assert_ptr_equal(deps[0], mine);
	assert_cuda(cuStreamUpdateCaptureDependencies_v2(s, &mine, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	assert_cuda(cuStreamGetCaptureInfo_v2(s, &status, NULL, NULL, &deps, &n));
	assert_int_equal(n, 1); /* it was there */
	assert_int_equal(cuStreamUpdateCaptureDependencies(s, &mine, 1, 2), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(launch(s));
	made = end(s, 3);
	assert_ptr_equal(made, g);
	n = 3;
	assert_cuda(cuGraphGetNodes(made, list, &n));
	assert_int_equal(cuStreamUpdateCaptureDependencies(s, &mine, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
	status = 9;
	assert_cuda(cuStreamGetCaptureInfo(s, &status, &id));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	/* Into a graph that is there, behind its last node. */
	assert_cuda(cuStreamBeginCaptureToGraph(s, made, &list[2], NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_cuda(launch(s));
	assert_ptr_equal(end(s, 4), made);
	assert_cuda(cuGraphCreate(&g, 0));
	assert_int_equal(cuStreamBeginCaptureToGraph(s, g, &list[2], NULL, 1, 0),
			 CUDA_ERROR_INVALID_VALUE); /* not its */
	assert_int_equal(cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphDestroy(g));
	assert_int_equal(cuStreamBeginCaptureToGraph(s, NULL, NULL, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamBeginCapture_v2(s, 3), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphDestroy(made));
}

/* A graph launched into a capture; streams and contexts that go away in the middle of one. */
static void ends_otherwise(void **state HM_UNUSED)
{
	CUgraph g, memory_graph;
	CUgraphExec x, with_memory;
	CUcontext ctx;
	CUstream mine;
	CUdeviceptr p;

	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(launch(s));
	g = end(s, 1);
	assert_cuda(cuGraphInstantiateWithFlags(&x, g, 0));
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuMemAllocAsync(&p, 1, s));
	memory_graph = end(s, 1);
	assert_cuda(cuGraphInstantiateWithFlags(&with_memory, memory_graph, 0));
	begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuGraphLaunch(x, s));
	assert_int_equal(cuGraphLaunch(with_memory, s), CUDA_ERROR_NOT_SUPPORTED);
	assert_cuda(cuGraphDestroy(end(s, 1)));
	assert_cuda(cuGraphExecDestroy(x));
	assert_cuda(cuGraphExecDestroy(with_memory));
	assert_cuda(cuGraphDestroy(g));
	assert_cuda(cuGraphDestroy(memory_graph));
	assert_cuda(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
	begin(mine, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuMemAllocAsync(&p, MIB, mine));
	assert_cuda(cuStreamDestroy_v2(mine));
	assert_cuda(cuCtxSynchronize()); /* nothing captures any more */
	assert_cuda(cuCtxCreate_v2(&ctx, 0, 1));
	assert_cuda(cuStreamCreate(&mine, 0));
	begin(mine, CU_STREAM_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuCtxDestroy_v2(ctx));
	assert_cuda(cuCtxSynchronize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
		TEST(work_becomes_nodes), TEST(unsafe_calls),  TEST(safe_calls),  TEST(other_threads),
		TEST(legacy_stream),      TEST(fork_and_join), TEST(information), TEST(ends_otherwise),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
