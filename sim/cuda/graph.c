#include "sim/cuda/graph.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph_memory.h"
#include "sim/cuda/handles.h"

CUresult cu_graph_new(CUgraph *out)
{
	struct CUgraph_st *g = calloc(1, sizeof *g);

	if (g == NULL || !cu_handle_add(g, CU_GRAPH)) {
		free(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	list_init(&g->nodes);
	*out = g;
	return CUDA_SUCCESS;
}

void cu_work_clear(struct cu_work *work)
{
	if (work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		cu_graph_alloc_unref(work->alloc);
	else if (work->type == CU_GRAPH_NODE_TYPE_GRAPH && work->child->owned)
		cu_graph_free(work->child);
}

static void node_free(CUgraphNode node)
{
	cu_work_clear(&node->work);
	cu_handle_remove(node);
	link_remove(&node->link);
	free(node->deps);
	free(node);
}

void cu_graph_free(CUgraph g)
{
	LIST_FOR_EACH (&g->nodes, it)
		node_free(HM_CONTAINER(it, struct CUgraphNode_st, link));
	cu_handle_remove(g);
	free(g);
}

static bool all_of_graph(CUgraph g, const CUgraphNode *deps, size_t count)
{
	if (count > 0 && deps == NULL)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!cu_handle_is(deps[i], CU_NODE) || deps[i]->graph != g)
			return false;
	return true;
}

static bool is_memory(const struct cu_work *work)
{
	return work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult cu_graph_add(CUgraph g, const CUgraphNode *deps, size_t count, struct cu_work *work, CUgraphNode *out)
{
	if (!all_of_graph(g, deps, count)) {
		cu_work_clear(work);
		return CUDA_ERROR_INVALID_VALUE;
	}
	struct CUgraphNode_st *node = calloc(1, sizeof *node);
	CUgraphNode *own_deps = calloc(HM_MAX(count, (size_t)1), sizeof(CUgraphNode));

	if (node == NULL || own_deps == NULL || !cu_handle_add(node, CU_NODE)) {
		free(own_deps);
		free(node);
		cu_work_clear(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t i = 0; i < count; i++) {
		own_deps[i] = deps[i];
		deps[i]->has_dependents = true;
	}
	node->graph = g;
	node->work = *work;
	node->deps = own_deps;
	node->dep_count = count;
	link_append(&g->nodes, &node->link);
	g->count++;
	g->memory |= is_memory(work);
	if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		work->child->owned = true;
		g->memory |= work->child->memory;
	}
	*out = node;
	return CUDA_SUCCESS;
}

/* A copy that goes with the work it is for. */
static CUresult copy_owned(CUgraph from, CUgraph *out)
{
	CUresult rc = cu_graph_copy(from, out);

	if (rc == CUDA_SUCCESS)
		(*out)->owned = true;
	return rc;
}

CUresult cu_work_of_graph(CUgraph child, struct cu_work *out)
{
	*out = (struct cu_work) { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	if (child->memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	return child->owned ? CUDA_ERROR_INVALID_VALUE : copy_owned(child, &out->child);
}

CUresult cu_work_of_moved_graph(CUgraph parent, CUgraph child, struct cu_work *out)
{
	*out = (struct cu_work) { .type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child };
	if (parent->owned) /* a moved graph gets no more memory nodes */
		return CUDA_ERROR_NOT_SUPPORTED;
	return child->owned ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The work of a node for a node of a copy: with references and a child of its own. */
static CUresult work_copy(const struct cu_work *from, struct cu_work *out)
{
	*out = *from;
	if (is_memory(from))
		cu_graph_alloc_ref(out->alloc);
	return from->type == CU_GRAPH_NODE_TYPE_GRAPH ? copy_owned(from->child, &out->child) : CUDA_SUCCESS;
}

/* The node of `to` at the same place as `node` in its graph. */
static CUgraphNode twin(CUgraph to, CUgraphNode node)
{
	struct link *at = to->nodes.next;

	for (struct link *it = node->graph->nodes.next; it != &node->link; it = it->next)
		at = at->next;
	return HM_CONTAINER(at, struct CUgraphNode_st, link);
}

CUresult cu_graph_copy(CUgraph from, CUgraph *out)
{
	CUgraph g;
	CUresult rc = cu_graph_new(&g);

	if (rc != CUDA_SUCCESS)
		return rc;
	LIST_FOR_EACH (&from->nodes, it) {
		CUgraphNode node = HM_CONTAINER(it, struct CUgraphNode_st, link), copy = NULL;
		struct cu_work work;

		rc = work_copy(&node->work, &work);
		if (rc == CUDA_SUCCESS)
			rc = cu_graph_add(g, NULL, 0, &work, &copy);
		if (rc != CUDA_SUCCESS)
			goto failed;
		free(copy->deps);
		copy->deps = calloc(HM_MAX(node->dep_count, (size_t)1), sizeof(CUgraphNode));
		rc = CUDA_ERROR_OUT_OF_MEMORY;
		if (copy->deps == NULL)
			goto failed;
		copy->dep_count = node->dep_count;
		copy->has_dependents = node->has_dependents;
		for (size_t i = 0; i < node->dep_count; i++)
			copy->deps[i] = twin(g, node->deps[i]);
	}
	*out = g;
	return CUDA_SUCCESS;
failed:
	cu_graph_free(g);
	return rc;
}

CU_EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_leave(out == NULL || flags != 0 ? CUDA_ERROR_INVALID_VALUE : cu_graph_new(out));
}

/* Takes the lock and looks a graph up. */
static CUresult enter_graph(CUgraph g)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	return cu_handle_is(g, CU_GRAPH) ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_INVALID_VALUE);
}

CU_EXPORT CUresult cuGraphDestroy(CUgraph g)
{
	CUresult rc = enter_graph(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (g->owned)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	cu_graph_free(g);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGraphClone(CUgraph *out, CUgraph g)
{
	CUresult rc = enter_graph(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	return cu_leave(g->memory ? CUDA_ERROR_NOT_SUPPORTED : cu_graph_copy(g, out));
}

/* With NULL for the nodes it says how many there are; places beyond the last are filled with NULL. */
CU_EXPORT CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *out, size_t *count)
{
	CUresult rc = enter_graph(g);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (count == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	size_t n = 0;

	LIST_FOR_EACH (&g->nodes, it) {
		if (out != NULL && n < *count)
			out[n] = HM_CONTAINER(it, struct CUgraphNode_st, link);
		n++;
	}
	for (size_t i = n; out != NULL && i < *count; i++)
		out[i] = NULL;
	*count = out != NULL ? HM_MIN(n, *count) : n;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || !cu_handle_is(node, CU_NODE) || node->work.type != CU_GRAPH_NODE_TYPE_GRAPH)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = node->work.child;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *out)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || !cu_handle_is(node, CU_NODE))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = node->work.type;
	return cu_leave(CUDA_SUCCESS);
}

/* As cuGraphGetNodes; the edges are plain ones. */
static CUresult dependencies(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges, size_t *count)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (count == NULL || !cu_handle_is(node, CU_NODE))
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; out != NULL && i < *count; i++)
		out[i] = i < node->dep_count ? node->deps[i] : NULL;
	for (size_t i = 0; edges != NULL && i < *count; i++)
		edges[i] = (CUgraphEdgeData) { 0 };
	*count = out != NULL ? HM_MIN(node->dep_count, *count) : node->dep_count;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count)
{
	return dependencies(node, out, NULL, count);
}

CU_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges,
						 size_t *count)
{
	return dependencies(node, out, edges, count);
}
