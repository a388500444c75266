/* CUDA arrays and mipmapped arrays: charged when created, given back when destroyed. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_ARRAY_H
#define HM_SIM_CUDA_ARRAY_H

#include "abi/cuda_array.h"
#include "sim/cuda/state.h"

struct cu_tiles; /* array_map.c: what is mapped into an array without memory of its own */

void cu_arrays_drop(struct CUctx_st *ctx); /* all of a dying context */
void cu_tiles_free(struct cu_tiles *t);    /* gives back what is mapped; NULL is fine */

/* An array or a mipmapped array, as something to map memory into. */
struct cu_array_view {
	const CUDA_ARRAY3D_DESCRIPTOR *desc;
	unsigned levels;
	uint64_t bytes;
	struct cu_tiles **tiles; /* *tiles NULL: nothing was mapped yet */
};
bool cu_array_view(CUarray a, struct cu_array_view *out); /* false: none, or a level of a mipmapped one */
bool cu_mipmap_view(CUmipmappedArray m, struct cu_array_view *out);

#endif
