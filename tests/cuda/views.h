/* What programs in the container are shown of a card. */
#ifndef HM_TESTS_CUDA_VIEWS_H
#define HM_TESTS_CUDA_VIEWS_H

#include <stddef.h>

/* Bytes in use, by NVML (both versions), and by CUDA where the card's context is current: they must agree to the byte,
 * and each show the limit as the total. Bare: what the driver's books say. */
size_t views_used(int card);

/* The views and the driver's books agree (HAMI_CHECK_SLACK); bare: says nothing. Returns views_used. */
size_t views_match_books(int card);

#endif
