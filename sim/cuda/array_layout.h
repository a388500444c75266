/* How much memory an array takes. As cards lay them out: rows of 64 bytes times 8 ("GOB"), whole pages of 64 KiB. */
#ifndef HM_SIM_CUDA_ARRAY_LAYOUT_H
#define HM_SIM_CUDA_ARRAY_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_array.h"

#define ARRAY_PAGE_BYTES ((uint64_t)64 << 10)

/* Whether a card would make such an array: a known format, sizes within a card's bounds, flags that go together. */
bool array_desc_ok(const CUDA_ARRAY3D_DESCRIPTOR *desc);
/* Mip levels at most: until every size is 1. */
unsigned array_levels_max(const CUDA_ARRAY3D_DESCRIPTOR *desc);
/* The description of a level; a layered array has the same layers in each. */
CUDA_ARRAY3D_DESCRIPTOR array_level(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level);
/* Bytes of `levels` levels, whole pages; desc is one that array_desc_ok accepted. */
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels);

/* How a sparse array is cut in tiles of ARRAY_PAGE_BYTES: each level below tail_level on its own, in elements; what is
 * left, of each layer, in a row of bytes. */
struct array_tiling {
	unsigned width, height, depth; /* of a tile */
	unsigned levels, tail_level;
	unsigned layers;     /* 1 for what is not layered */
	uint64_t tail_bytes; /* of a layer, whole tiles */
};
/* False: not to be cut (of one dimension, or of compressed blocks, which are not modelled). */
bool array_tiling(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, struct array_tiling *out);

#endif
