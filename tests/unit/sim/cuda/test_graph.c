#include <string.h>

#include "core/macros.h"
#include "fixture.h"
#include "harness/kernels_ptx.h"
#include "sim/lib/sim_client.h"

static cuuint64_t graph_memory(CUgraphMem_attribute which)
{
	cuuint64_t value = 99;

	assert_cuda(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

#define USED graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
#define USED_HIGH graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
#define RESERVED graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
#define RESERVED_HIGH graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)

static CUDA_MEM_ALLOC_NODE_PARAMS want(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS) {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = bytes,
	};
}

static CUgraph new_graph(void)
{
	CUgraph g = NULL;

	assert_cuda(cuGraphCreate(&g, 0));
	return g;
}

static CUgraphNode add_alloc(CUgraph g, CUgraphNode after, size_t bytes, CUdeviceptr *ptr)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = want(bytes);
	CUgraphNode node = NULL;

	assert_cuda(cuGraphAddMemAllocNode(&node, g, &after, after != NULL ? 1 : 0, &p));
	*ptr = p.dptr;
	return node;
}

static CUgraphNode add_free(CUgraph g, CUgraphNode after, CUdeviceptr ptr)
{
	CUgraphNode node = NULL;

	assert_cuda(cuGraphAddMemFreeNode(&node, g, &after, after != NULL ? 1 : 0, ptr));
	return node;
}

static CUgraphExec instantiate(CUgraph g, unsigned long long flags)
{
	CUgraphExec x = NULL;

	assert_cuda(cuGraphInstantiateWithFlags(&x, g, flags));
	return x;
}

static void drop(CUgraphExec x, CUgraph g)
{
	assert_cuda(cuGraphExecDestroy(x));
	assert_cuda(cuGraphDestroy(g));
}

static void reset_marks(void)
{
	cuuint64_t zero = 0;

	assert_cuda(cuDeviceGraphMemTrim(0));
	assert_cuda(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	assert_cuda(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
}

/* Nothing until the launch; what was reserved stays until it is trimmed. */
static void memory_at_launch(void **state HM_UNUSED)
{
	CUgraph g = new_graph();
	CUdeviceptr a, b;
	CUgraphNode node;

	reset_marks();
	node = add_alloc(g, NULL, 10 * MIB + 1, &a); /* 12 MiB of pages */
	node = add_free(g, node, a);
	node = add_alloc(g, node, 20 * MIB, &b);
	add_free(g, node, b);
	assert_int_equal(free_bytes(), ROOM_BYTES);
	CUgraphExec x = instantiate(g, 0);

	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_int_equal(RESERVED, 0);
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_int_equal(USED, 0);
	assert_int_equal(USED_HIGH, 20 * MIB); /* one after the other */
	assert_int_equal(RESERVED, 20 * MIB);
	assert_int_equal(free_bytes(), ROOM_BYTES - 20 * MIB);
	assert_cuda(cuGraphLaunch_ptsz(x, NULL));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(free_bytes(), ROOM_BYTES - 20 * MIB);
	drop(x, g);
	assert_int_equal(free_bytes(), ROOM_BYTES - 20 * MIB);
	assert_cuda(cuDeviceGraphMemTrim(0));
	assert_int_equal(RESERVED, 0);
	assert_int_equal(RESERVED_HIGH, 20 * MIB);
	assert_int_equal(free_bytes(), ROOM_BYTES);
	assert_int_equal(cuDeviceGraphMemTrim(2), CUDA_ERROR_INVALID_DEVICE);
}

/* Both at once where nothing is freed between; freed by either call afterwards, and once. */
static void freed_outside(void **state HM_UNUSED)
{
	CUgraph g = new_graph();
	CUdeviceptr a, b;
	CUgraphNode node;
	unsigned char got = 9;

	reset_marks();
	node = add_alloc(g, NULL, 10 * MIB, &a);
	add_alloc(g, node, 6 * MIB, &b);
	assert_int_equal(cuMemsetD8_v2(a, 1, 1), CUDA_ERROR_INVALID_VALUE); /* an address without memory */
	assert_int_equal(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	CUgraphExec x = instantiate(g, 0);

	assert_cuda(cuGraphLaunch(x, NULL));
	assert_int_equal(USED, 16 * MIB);
	assert_cuda(cuMemsetD8_v2(a, 7, 10 * MIB));
	assert_cuda(cuMemcpyDtoH_v2(&got, a + 10 * MIB - 1, 1));
	assert_int_equal(got, 7);
	assert_int_equal(cuMemsetD8_v2(a, 1, 10 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphLaunch(x, NULL), CUDA_ERROR_INVALID_VALUE); /* still in use */
	assert_cuda(cuDeviceGraphMemTrim(0));                               /* nothing idle */
	assert_int_equal(free_bytes(), ROOM_BYTES - 16 * MIB);
	assert_cuda(cuMemFree_v2(a));
	assert_int_equal(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(USED, 6 * MIB);
	assert_cuda(cuDeviceGraphMemTrim(0));
	assert_int_equal(free_bytes(), ROOM_BYTES - 6 * MIB);
	drop(x, g); /* what is in use outlives both */
	assert_cuda(cuMemsetD8_v2(b, 1, 6 * MIB));
	assert_cuda(cuMemFreeAsync(b, NULL));
	assert_int_equal(free_bytes(), ROOM_BYTES - 6 * MIB);
	assert_cuda(cuDeviceGraphMemTrim(0));
}

static void auto_free(void **state HM_UNUSED)
{
	CUgraph g = new_graph();
	CUdeviceptr a;

	reset_marks();
	add_alloc(g, NULL, 10 * MIB, &a);
	CUgraphExec x = instantiate(g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	cuuint64_t flags = 0;

	assert_cuda(cuGraphExecGetFlags(x, &flags));
	assert_int_equal(flags, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	for (int i = 0; i < 3; i++)
		assert_cuda(cuGraphLaunch(x, NULL));
	assert_int_equal(USED, 10 * MIB);
	assert_int_equal(RESERVED_HIGH, 10 * MIB);
	assert_cuda(cuMemFree_v2(a));
	drop(x, g);
	assert_cuda(cuDeviceGraphMemTrim(0));
}

/* By another graph's node. */
static void freed_by_another_graph(void **state HM_UNUSED)
{
	CUgraph g = new_graph(), other = new_graph();
	CUdeviceptr a, got = 0;
	CUgraphNode node;

	add_alloc(g, NULL, 10 * MIB, &a);
	CUgraphNode freeing = add_free(other, NULL, a);

	assert_cuda(cuGraphMemFreeNodeGetParams(freeing, &got));
	assert_int_equal(got, a);
	assert_int_equal(cuGraphAddMemFreeNode(&node, other, NULL, 0, a), CUDA_ERROR_INVALID_VALUE); /* twice */
	assert_int_equal(cuGraphAddMemFreeNode(&node, g, NULL, 0, a), CUDA_ERROR_INVALID_VALUE);     /* both */
	CUgraphExec x = instantiate(g, 0), y = instantiate(other, 0);

	assert_int_equal(cuGraphLaunch(y, NULL), CUDA_ERROR_INVALID_VALUE); /* nothing there yet */
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_cuda(cuGraphLaunch(y, NULL));
	assert_int_equal(USED, 0);
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_cuda(cuGraphLaunch(y, NULL));
	drop(x, g);
	drop(y, other);
	assert_cuda(cuDeviceGraphMemTrim(0));
}

static void rules_of_memory_nodes(void **state HM_UNUSED)
{
	CUgraph g = new_graph(), clone, outer = new_graph();
	CUDA_MEM_ALLOC_NODE_PARAMS p = want(10 * MIB), got;
	CUgraphNode node, other;
	CUgraphExec y = NULL;
	CUdeviceptr plain;

	assert_cuda(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p));
	assert_cuda(cuGraphMemAllocNodeGetParams(node, &got));
	assert_int_equal(got.dptr, p.dptr);
	assert_int_equal(got.bytesize, 10 * MIB);
	assert_cuda(cuGraphAddMemFreeNode(&other, g, &node, 1, p.dptr));
	assert_int_equal(cuGraphMemAllocNodeGetParams(other, &got), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddMemFreeNode(&other, outer, NULL, 0, p.dptr), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAlloc_v2(&plain, MIB));
	assert_int_equal(cuGraphAddMemFreeNode(&other, g, NULL, 0, plain), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(plain));
	CUgraphExec x = instantiate(g, 0);

	assert_int_equal(cuGraphInstantiateWithFlags(&y, g, 0), CUDA_ERROR_NOT_SUPPORTED); /* one at a time */
	assert_cuda(cuGraphExecDestroy(x));
	x = instantiate(g, 0);
	assert_int_equal(cuGraphClone(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuGraphAddChildGraphNode(&node, outer, NULL, 0, g), CUDA_ERROR_NOT_SUPPORTED);
	p = want(0);
	assert_int_equal(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
	p = want(SIZE_MAX);
	assert_int_equal(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p), CUDA_ERROR_OUT_OF_MEMORY);
	p = want(1);
	p.poolProps.location.id = 2;
	assert_int_equal(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p), CUDA_ERROR_INVALID_DEVICE);
	p.poolProps.location = (CUmemLocation) { CU_MEM_LOCATION_TYPE_HOST, 0 };
	assert_int_equal(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p), CUDA_ERROR_NOT_SUPPORTED);
	assert_cuda(cuGraphDestroy(outer));
	drop(x, g);
}

/* A launch is refused whole: nothing is in use and nothing reserved by it. */
static void refused_launch(void **state HM_UNUSED)
{
	CUgraph g = new_graph();
	CUdeviceptr a, b, big;

	reset_marks();
	add_alloc(g, NULL, 10 * MIB, &a);
	add_alloc(g, NULL, 10 * MIB, &b);
	CUgraphExec x = instantiate(g, 0);

	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - 18 * MIB));
	assert_int_equal(cuGraphLaunch(x, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuGraphUpload(x, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(USED, 0);
	assert_int_equal(RESERVED, 0);
	assert_int_equal(free_bytes(), 18 * MIB);
	assert_cuda(cuMemFree_v2(big));
	assert_cuda(cuGraphUpload(x, NULL)); /* memory, but not in use yet */
	assert_int_equal(USED, 0);
	assert_int_equal(RESERVED, 20 * MIB);
	assert_cuda(cuGraphUpload_ptsz(x, NULL));
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_int_equal(RESERVED, 20 * MIB);
	assert_cuda(cuMemFree_v2(a));
	assert_cuda(cuMemFree_v2(b));
	drop(x, g);
	assert_cuda(cuDeviceGraphMemTrim(0));
}

static void upload_at_instantiation(void **state HM_UNUSED)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS p = { .flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .result_out = 9 };
	CUgraph g = new_graph();
	CUgraphExec x;
	CUdeviceptr a, big;

	reset_marks();
	add_alloc(g, NULL, 10 * MIB, &a);
	assert_int_equal(cuGraphInstantiateWithFlags(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAlloc_v2(&big, ROOM_BYTES - 8 * MIB));
	assert_int_equal(cuGraphInstantiateWithParams(&x, g, &p), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
	assert_cuda(cuMemFree_v2(big));
	assert_cuda(cuGraphInstantiateWithParams_ptsz(&x, g, &p)); /* the failed one claims nothing */
	assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
	assert_int_equal(free_bytes(), ROOM_BYTES - 10 * MIB);
	drop(x, g);
	assert_cuda(cuDeviceGraphMemTrim(0));
}

/* Kernels of both parameter forms and of the common call, and a child graph, in the stream's order. */
static void kernels(void **state HM_UNUSED)
{
	CUmodule module;
	CUfunction busy, touch;
	CUgraph g = new_graph(), child = new_graph();
	CUgraphNode alloc, node, last;
	CUdeviceptr a;
	uint64_t ns = 1000000, bytes = 4096;
	unsigned char got[2] = { 0 };
	int type = -1;

	assert_cuda(cuModuleLoadData(&module, kernels_ptx));
	assert_cuda(cuModuleGetFunction(&busy, module, "busy_ns"));
	assert_cuda(cuModuleGetFunction(&touch, module, "touch"));
	alloc = add_alloc(g, NULL, MIB, &a);
	void *busy_params[] = { &ns }, *touch_params[] = { &a, &bytes };
	CUDA_KERNEL_NODE_PARAMS old = { busy, 1, 1, 1, 32, 1, 1, 0, busy_params, NULL };
	CUDA_KERNEL_NODE_PARAMS_v2 new = { touch, 1, 1, 1, 32, 1, 1, 0, touch_params, NULL, NULL, NULL };
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = new };

	assert_cuda(cuGraphAddKernelNode(&node, child, NULL, 0, &old));
	ns = 77; /* read when the node was made */
	assert_cuda(cuGraphAddKernelNode_v2(&node, g, &alloc, 1, &new));
	any.kernel.func = busy;
	any.kernel.kernelParams = busy_params;
	ns = 500000;
	assert_cuda(cuGraphAddNode_v2(&last, g, &node, NULL, 1, &any));
	assert_cuda(cuGraphAddChildGraphNode(&node, g, &last, 1, child));
	assert_cuda(cuGraphNodeGetType(node, &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
	assert_cuda(cuGraphAddEmptyNode(&node, g, &node, 1));
	assert_cuda(cuGraphDestroy(child)); /* the node has its own */
	CUgraphExec x = instantiate(g, 0);

	assert_int_equal(sim_attach(), SIM_OK); /* this program's own view of the node's clock */
	uint64_t start = sim_now_ns();

	assert_cuda(cuGraphLaunch(x, NULL));
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	assert_cuda(cuStreamSynchronize(NULL));
	assert_int_equal(sim_now_ns() - start, 1000 + 500000 + 1000000); /* touch takes 1 us at least */
	assert_cuda(cuMemcpyDtoH_v2(got, a + 254, 2));
	assert_int_equal(got[0], 254);
	assert_int_equal(got[1], 255);
	assert_cuda(cuMemFree_v2(a));
	assert_cuda(cuModuleUnload(module));
	assert_int_equal(cuGraphLaunch(x, NULL), CUDA_ERROR_INVALID_HANDLE); /* its code is gone */
	assert_int_equal(USED, 0);
	drop(x, g);
	assert_cuda(cuDeviceGraphMemTrim(0));
}

/* A kernel runs in the context that its node names, behind the stream's work where both are on one card. */
static void other_contexts(void **state HM_UNUSED)
{
	uint64_t ns = 1000000;
	void *params[] = { &ns };
	CUcontext primary, ctx;
	CUlibrary library;
	CUkernel kernel;

	assert_cuda(cuCtxGetCurrent(&primary));
	assert_cuda(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	assert_cuda(cuLibraryGetKernel(&kernel, library, "busy_ns"));
	for (int dev = 0; dev < 2; dev++) {
		CUgraph g = new_graph();
		CUgraphNode node;

		assert_cuda(cuCtxCreate_v2(&ctx, 0, dev));
		assert_cuda(cuCtxSetCurrent(primary));
		CUDA_KERNEL_NODE_PARAMS_v2 p = { NULL, 1, 1, 1, 32, 1, 1, 0, params, NULL, kernel, ctx };

		assert_cuda(cuGraphAddKernelNode_v2(&node, g, NULL, 0, &p));
		CUgraphExec x = instantiate(g, 0);

		assert_cuda(cuGraphLaunch(x, NULL));
		assert_int_equal(cuStreamQuery(NULL), dev == 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
		assert_cuda(cuCtxSetCurrent(ctx));
		assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
		assert_cuda(cuCtxSynchronize());
		assert_cuda(cuCtxSetCurrent(primary));
		assert_cuda(cuStreamQuery(NULL));
		assert_cuda(cuCtxDestroy_v2(ctx));
		assert_int_equal(cuGraphLaunch(x, NULL), CUDA_ERROR_INVALID_CONTEXT);
		drop(x, g);
	}
	assert_cuda(cuLibraryUnload(library));
}

/* By the common call, in both its forms. */
static void any_node(void **state HM_UNUSED)
{
	CUgraph g = new_graph();
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	CUgraphNode node, next, list[4];
	size_t n = 0;
	int type;

	p.alloc = want(3 * MIB);
	assert_cuda(cuGraphAddNode(&node, g, NULL, 0, &p));
	CUdeviceptr ptr = p.alloc.dptr;

	assert_int_not_equal(ptr, 0);
	p = (CUgraphNodeParams) { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
	p.free.dptr = ptr;
	assert_cuda(cuGraphAddNode_v2(&next, g, &node, NULL, 1, &p));
	p.type = CU_GRAPH_NODE_TYPE_EMPTY;
	assert_cuda(cuGraphAddNode(&next, g, NULL, 0, &p));
	p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	assert_int_equal(cuGraphAddNode(&next, g, NULL, 0, &p), CUDA_ERROR_NOT_SUPPORTED);
	assert_cuda(cuGraphGetNodes(g, NULL, &n));
	assert_int_equal(n, 3);
	n = 4;
	assert_cuda(cuGraphGetNodes(g, list, &n));
	assert_int_equal(n, 3);
	assert_ptr_equal(list[0], node);
	assert_null(list[3]);
	assert_cuda(cuGraphNodeGetType(list[1], &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
	assert_cuda(cuGraphDestroy(g));
	assert_int_equal(cuGraphNodeGetType(list[1], &type), CUDA_ERROR_INVALID_VALUE);
}

/* A copy has edges of its own between its own nodes. */
static void dependencies(void **state HM_UNUSED)
{
	CUgraph g = new_graph(), copy;
	CUgraphNode n[3], c[3], deps[3], both[2];
	CUgraphEdgeData edges[2] = { { 7, 7, 7, { 0 } } };
	size_t count = 3;

	assert_cuda(cuGraphAddEmptyNode(&n[0], g, NULL, 0));
	assert_cuda(cuGraphAddEmptyNode(&n[1], g, NULL, 0));
	both[0] = n[1];
	both[1] = n[0];
	assert_cuda(cuGraphAddEmptyNode(&n[2], g, both, 2));
	assert_cuda(cuGraphClone(&copy, g));
	assert_int_equal(cuGraphAddChildGraphNode(&deps[0], g, NULL, 0, g), CUDA_ERROR_INVALID_VALUE); /* in itself */
	assert_cuda(cuGraphDestroy(g));
	assert_int_equal(cuGraphAddChildGraphNode(&deps[0], copy, NULL, 0, g), CUDA_ERROR_INVALID_VALUE); /* gone */
	assert_cuda(cuGraphGetNodes(copy, c, &count));
	assert_int_equal(count, 3);
	count = 3;
	assert_cuda(cuGraphNodeGetDependencies(c[2], deps, &count));
	assert_int_equal(count, 2);
	assert_ptr_equal(deps[0], c[1]);
	assert_ptr_equal(deps[1], c[0]);
	assert_null(deps[2]);
	count = 1;
	assert_cuda(cuGraphNodeGetDependencies_v2(c[2], deps, edges, &count));
	assert_int_equal(count, 1);
	assert_int_equal(edges[0].type, 0);
	assert_cuda(cuGraphNodeGetDependencies(c[0], NULL, &count));
	assert_int_equal(count, 0);
	assert_int_equal(cuGraphNodeGetDependencies(n[0], NULL, &count), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphDestroy(copy));
}

static void bad_calls(void **state HM_UNUSED)
{
	CUgraph g = new_graph(), other = new_graph(), copy;
	CUgraphNode a, b;
	CUgraphExec x;
	cuuint64_t one = 1, zero = 0;

	assert_cuda(cuGraphAddEmptyNode(&a, other, NULL, 0));
	assert_int_equal(cuGraphAddEmptyNode(&b, g, &a, 1), CUDA_ERROR_INVALID_VALUE); /* another graph's node */
	assert_int_equal(cuGraphAddEmptyNode(&b, g, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddEmptyNode(NULL, g, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddKernelNode(&b, g, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddKernelNode_v2(&b, g, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddMemAllocNode(&b, g, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddNode(&b, g, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphAddEmptyNode(&b, other, &a, 1));
	assert_cuda(cuGraphClone(&copy, other));
	assert_cuda(cuGraphDestroy(other));
	assert_int_equal(cuGraphDestroy(other), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphInstantiate(&x, copy, NULL, NULL, 0));
	assert_cuda(cuGraphExecDestroy(x));
	assert_int_equal(cuGraphExecDestroy(x), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphLaunch(x, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphInstantiate_v2(&x, copy, NULL, NULL, 0));
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_int_equal(cuGraphLaunch(x, (CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
	drop(x, copy);
	assert_int_equal(cuGraphInstantiateWithFlags(&x, g, 16), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphCreate(&other, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetGraphMemAttribute(0, 4, &zero), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphDestroy(g));
}

/* The device's last context takes along what its graphs have; the graph itself stays. */
static void ends_with_the_context(void **state HM_UNUSED)
{
	CUgraph g = new_graph();
	CUgraphExec x;
	CUdeviceptr a;
	CUcontext ctx, primary;
	CUdevice dev = 1;
	CUDA_MEM_ALLOC_NODE_PARAMS p = want(10 * MIB);
	CUgraphNode node;
	cuuint64_t value = 9;
	size_t left, total;

	p.poolProps.location.id = dev;
	assert_cuda(cuCtxGetCurrent(&primary));
	assert_cuda(cuCtxCreate_v2(&ctx, 0, dev));
	assert_cuda(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p));
	a = p.dptr;
	x = instantiate(g, 0);
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_cuda(cuDeviceGetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
	assert_int_equal(value, 10 * MIB);
	assert_int_equal(RESERVED, 0); /* the other device's */
	/* What is on the other device stays: of a graph and of none, and the device's own that has no memory now. */
	CUgraph near = new_graph(), idle = new_graph();
	CUdeviceptr kept, plain, unused;

	add_alloc(near, NULL, 4 * MIB, &kept);
	p.bytesize = 1;
	assert_cuda(cuGraphAddMemAllocNode(&node, idle, NULL, 0, &p));
	unused = p.dptr;
	CUgraphExec y = instantiate(near, 0);

	assert_cuda(cuMemAlloc_v2(&plain, MIB)); /* goes with the context */
	assert_cuda(cuMemAllocAsync(&plain, MIB, NULL));
	assert_cuda(cuCtxSetCurrent(primary));
	assert_cuda(cuGraphLaunch(y, NULL));
	assert_cuda(cuCtxDestroy_v2(ctx));
	assert_cuda(cuDeviceGetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
	assert_int_equal(value, 0);
	assert_int_equal(USED, 4 * MIB);
	assert_cuda(cuMemsetD8_v2(kept, 1, 4 * MIB));
	assert_int_equal(cuMemFree_v2(unused), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(kept));
	drop(y, near);
	assert_cuda(cuGraphDestroy(idle));
	assert_cuda(cuDeviceGraphMemTrim(0));
	assert_int_equal(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuCtxCreate_v2(&ctx, 0, dev));
	assert_cuda(cuMemGetInfo_v2(&left, &total));
	assert_int_equal(left, ROOM_BYTES);
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_cuda(cuMemFree_v2(a));
	drop(x, g);
	assert_cuda(cuCtxDestroy_v2(ctx));
	assert_cuda(cuCtxSetCurrent(primary));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_up, context_down)
		TEST(memory_at_launch),
		TEST(freed_outside),
		TEST(auto_free),
		TEST(freed_by_another_graph),
		TEST(rules_of_memory_nodes),
		TEST(refused_launch),
		TEST(upload_at_instantiation),
		TEST(kernels),
		TEST(other_contexts),
		TEST(any_node),
		TEST(dependencies),
		TEST(bad_calls),
		TEST(ends_with_the_context),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
