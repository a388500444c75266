/* Memory that graphs allocate and free. An allocation has its address from the time its node is made, and memory from
 * the launch that runs the node until it is freed. What a device's graphs have taken ("reserved") stays taken until it
 * is trimmed. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_GRAPH_MEMORY_H
#define HM_SIM_CUDA_GRAPH_MEMORY_H

#include "sim/cuda/state.h"

struct cu_region;

struct cu_graph_alloc {
	struct cu_region *region; /* kind GRAPH */
	unsigned refs;            /* of nodes, and one while live */
	bool live;                /* has memory */
	bool instantiated;        /* in a graph that can be launched: in one at a time */
	const void *owner;        /* the graph of the allocating node; compared only */
	bool owner_frees, other_frees;
	CUDA_MEM_ALLOC_NODE_PARAMS params; /* as asked for */
};

/* One reference, the caller's. */
CUresult cu_graph_alloc_new(const CUDA_MEM_ALLOC_NODE_PARAMS *params, const void *owner, struct cu_graph_alloc **out);
struct cu_graph_alloc *cu_graph_alloc_ref(struct cu_graph_alloc *a);
void cu_graph_alloc_unref(struct cu_graph_alloc *a);
struct cu_graph_alloc *cu_graph_alloc_at(CUdeviceptr ptr); /* the one that starts there; NULL */

/* So much for `bytes` more in use on the device, reserved; OUT_OF_MEMORY changes nothing. */
CUresult cu_graph_reserve(unsigned device, uint64_t bytes);
void cu_graph_take(struct cu_graph_alloc *a); /* its bytes have been reserved */
void cu_graph_give(struct cu_graph_alloc *a);
/* cuMemFree of the address: INVALID_VALUE where its own graph frees it. */
CUresult cu_graph_free_outside(struct cu_graph_alloc *a);

void cu_graph_memory_empty(unsigned device); /* the device's last context has gone */

#endif
