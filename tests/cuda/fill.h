/* One way of allocating, tried to the end: until it is refused, and back. */
#ifndef HM_TESTS_CUDA_FILL_H
#define HM_TESTS_CUDA_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "check.h"

struct way {
	/* The driver's answer; what was made in *out. */
	CUresult (*take)(uint64_t *out, size_t bytes);
	CUresult (*give)(uint64_t what);
	void (*before)(void); /* once, with the context current; or NULL */
	void (*after)(void);  /* after everything was given back, before the books are compared; or NULL */
	size_t step;          /* the driver takes memory in steps of so much; 0: 2 MiB */
	size_t rest;          /* the smallest request takes so much: it may be left when the limit is full; 0: a step */
};

/* The piece that a limit is filled with: a sixteenth, whole steps of 2 MiB. */
size_t fill_piece(void);

/* On card 0, in its primary context: takes pieces, then ever smaller ones, until one step is refused. Each refusal is
 * CUDA_ERROR_OUT_OF_MEMORY, the driver's books never pass the limit, and agree with the views when it is full; then
 * everything is given back, to the byte, and taken once more. */
void fill_and_empty(const struct way *way);

/* The same in the current context of a card. */
void fill_and_empty_here(int card, const struct way *way);

/* The same by cuMemAlloc_v2 and cuMemFree_v2 as a lookup found them. Not available where one is NULL. */
void fill_by_addresses(void *alloc, void *free);

/* In the current context of the card: 2 MiB more than the views leave is refused, just that much is not. */
void fill_expect_room(int card);

#endif
