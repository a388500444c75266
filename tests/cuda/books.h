/* The driver's own books: how much of each card is taken, as NVML says in a child that runs without libvgpu. Whole
 * cards are read, since a process in a pid namespace has no line of its own; so nobody else may use them meanwhile. */
#ifndef HM_TESTS_CUDA_BOOKS_H
#define HM_TESTS_CUDA_BOOKS_H

#include <stddef.h>

/* Starts the child and notes what is taken of each card, before anything of ours is. */
void books_open(void);

/* Bytes of the card, by CUDA's order, taken since books_open. */
size_t books_held(int card);

/* Waits up to 10 s (bare: 0.2 s) until the card has at most so many bytes taken: a driver takes a moment to clear up
 * after a process.
 */
size_t books_settle(int card, size_t bytes);

/* The child itself: `cuda-path --books`. */
int books_main(void);

#endif
