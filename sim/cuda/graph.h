/* Graphs: nodes in the order of their creation, so that each comes after those it depends on. What is instantiated is a
 * copy. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_GRAPH_H
#define HM_SIM_CUDA_GRAPH_H

#include "sim/cuda/copy.h"
#include "sim/cuda/kernels.h"
#include "sim/cuda/state.h"

struct cu_graph_alloc; /* graph_memory.h */

/* What a node does; type says which. */
struct cu_work {
	CUgraphNodeType type;
	struct CUctx_st *ctx; /* KERNEL: where it runs; must still be alive then */
	uint64_t ctx_id;
	union {
		struct cu_launch launch;
		struct cu_copy copy;
		struct cu_fill fill;
		struct cu_graph_alloc *alloc; /* MEM_ALLOC, MEM_FREE: one reference */
		CUgraph child;                /* GRAPH: the node's own */
	};
};

struct CUgraphNode_st {
	struct link link; /* on its graph's list */
	CUgraph graph;
	struct cu_work work;
	CUgraphNode *deps;
	size_t dep_count;
	bool has_dependents;
};

struct CUgraph_st {
	struct link nodes;
	size_t count;
	bool memory; /* has nodes that allocate or free, or children with such */
	bool owned;  /* a node's: freed with it, and no graph of its own any more */
};

CUresult cu_graph_new(CUgraph *out);
void cu_graph_free(CUgraph graph);
/* A copy without handles for its nodes, for what is instantiated; the memory nodes name the same allocations. */
CUresult cu_graph_copy(CUgraph from, CUgraph *out);

/* Takes what `work` owns, also on failure. INVALID_VALUE where a dependency is not a node of the graph. */
CUresult cu_graph_add(CUgraph graph, const CUgraphNode *deps, size_t count, struct cu_work *take_work,
		      CUgraphNode *out);
/* A copy of the child graph as work; NOT_SUPPORTED where the child has memory nodes. */
CUresult cu_work_of_graph(CUgraph child, struct cu_work *out);
/* The child graph itself, for a node of `parent`; INVALID_VALUE where it is another node's. */
CUresult cu_work_of_moved_graph(CUgraph parent, CUgraph child, struct cu_work *out);
/* Work that frees a graph allocation; INVALID_VALUE where ptr is none, or is freed already in this graph or by the
 * other party (its own graph, or any other). Once the node stands, cu_graph_frees remembers who does. */
CUresult cu_work_of_free(CUgraph graph, CUdeviceptr ptr, struct cu_work *out);
void cu_graph_frees(CUgraph graph, struct cu_graph_alloc *a);
void cu_work_clear(struct cu_work *work);

#endif
