/* Graphs that other graphs own: moved into them, with their memory nodes. */
#include "core/macros.h"
#include "fixture.h"

static cuuint64_t graph_memory(CUgraphMem_attribute which)
{
	cuuint64_t value = 99;

	assert_cuda(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

static CUgraph new_graph(void)
{
	CUgraph g = NULL;

	assert_cuda(cuGraphCreate(&g, 0));
	return g;
}

static CUgraphNode add_alloc(CUgraph g, size_t bytes, CUdeviceptr *ptr)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = bytes,
	};
	CUgraphNode node = NULL;

	assert_cuda(cuGraphAddMemAllocNode(&node, g, NULL, 0, &p));
	*ptr = p.dptr;
	return node;
}

static void add_free(CUgraph g, CUgraphNode after, CUdeviceptr ptr)
{
	CUgraphNode node;

	assert_cuda(cuGraphAddMemFreeNode(&node, g, &after, 1, ptr));
}

static CUresult move(CUgraph parent, CUgraph child, CUgraphNode *out)
{
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_GRAPH };

	p.graph = (CUDA_CHILD_GRAPH_NODE_PARAMS) { child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE };
	return cuGraphAddNode(out, parent, NULL, 0, &p);
}

/* A graph that allocates and frees that much. */
static CUgraph passing(size_t bytes)
{
	CUgraph g = new_graph();
	CUdeviceptr ptr;
	CUgraphNode node = add_alloc(g, bytes, &ptr);

	add_free(g, node, ptr);
	return g;
}

static void run(CUgraphExec x)
{
	assert_cuda(cuGraphLaunch(x, NULL));
	assert_cuda(cuCtxSynchronize());
}

/* The parent holds its own while the child comes and goes: the peak counts both. */
static void memory_of_moved_children(void **state HM_UNUSED)
{
	CUgraph parent = new_graph(), child = passing(10 * MIB), inner = passing(6 * MIB);
	CUgraphNode node, own;
	CUgraphExec x, y;
	CUdeviceptr ptr;

	assert_cuda(move(child, inner, &node));
	own = add_alloc(parent, 4 * MIB, &ptr);
	assert_cuda(move(parent, child, &node));
	add_free(parent, own, ptr);
	assert_cuda(cuGraphInstantiateWithFlags(&x, parent, 0));
	assert_int_equal(cuGraphInstantiateWithFlags(&y, parent, 0), CUDA_ERROR_NOT_SUPPORTED); /* one at a time */
	run(x);
	assert_int_equal(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 14 * MIB);
	assert_int_equal(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	run(x);
	assert_int_equal(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 14 * MIB);
	assert_cuda(cuGraphExecDestroy(x));
	assert_cuda(cuGraphDestroy(parent));
	assert_cuda(cuDeviceGraphMemTrim(0));
}

/* What lives on in a child is in the way of the next launch, or given back before it. */
static void live_memory_of_children(void **state HM_UNUSED)
{
	for (int frees_first = 0; frees_first < 2; frees_first++) {
		CUgraph parent = new_graph(), child = new_graph();
		CUdeviceptr ptr;
		CUgraphNode node;
		CUgraphExec x;

		add_alloc(child, 8 * MIB, &ptr);
		assert_cuda(move(parent, child, &node));
		assert_cuda(cuGraphInstantiateWithFlags(
			&x, parent, frees_first ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0));
		run(x);
		assert_int_equal(cuGraphLaunch(x, NULL), frees_first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 8 * MIB);
		assert_int_equal(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 8 * MIB);
		assert_cuda(cuMemFree_v2(ptr));
		assert_cuda(cuGraphExecDestroy(x));
		assert_cuda(cuGraphDestroy(parent));
		assert_cuda(cuDeviceGraphMemTrim(0));
	}
}

static void rules_of_moved_graphs(void **state HM_UNUSED)
{
	CUgraph parent = new_graph(), child = passing(MIB), other = passing(MIB), got = NULL;
	CUgraphNode node, again;
	CUgraphExec x;
	CUDA_MEM_ALLOC_NODE_PARAMS p = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = MIB,
	};

	assert_int_equal(move(parent, parent, &node), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(move(parent, child, &node));
	assert_cuda(cuGraphChildGraphNodeGetGraph(node, &got));
	assert_ptr_equal(got, child);
	assert_int_equal(cuGraphChildGraphNodeGetGraph(node, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(move(parent, child, &again), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(move(other, child, &again), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(move(child, other, &again), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuGraphAddMemAllocNode(&again, child, NULL, 0, &p), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuGraphInstantiateWithFlags(&x, child, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddChildGraphNode(&again, other, NULL, 0, parent), CUDA_ERROR_NOT_SUPPORTED);
	assert_cuda(cuGraphDestroy(parent));
	assert_cuda(cuGraphDestroy(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_of_moved_children, context_up, context_down),
		cmocka_unit_test_setup_teardown(live_memory_of_children, context_up, context_down),
		cmocka_unit_test_setup_teardown(rules_of_moved_graphs, context_up, context_down),
	};
	return cmocka_run_group_tests(tests, cuda_up, node_down);
}
