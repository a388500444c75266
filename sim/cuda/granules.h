/* Suballocation of one piece of memory in equal granules: first fit over a bitmap. A second bitmap marks where each
 * allocation starts, so that one ends where the next starts or the free granules begin. */
#ifndef HM_SIM_CUDA_GRANULES_H
#define HM_SIM_CUDA_GRANULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"

struct granules {
	size_t count, used;
	size_t hint;    /* no free granule below */
	size_t largest; /* no free run is longer */
	uint64_t *taken, *starts;
};

bool granules_init(struct granules *g, size_t count) HM_MUST_USE; /* false: out of memory */
void granules_fini(struct granules *g);

/* The first of n granules in a row, now taken; SIZE_MAX where there is no such run. n > 0. */
size_t granules_take(struct granules *g, size_t n);
/* Where the allocation that granule `at` belongs to starts, and its length in *n; SIZE_MAX where it is free. */
size_t granules_find(const struct granules *g, size_t at, size_t *n);
/* Frees the allocation that starts at `at`. */
void granules_give(struct granules *g, size_t at);

#endif
