/* The compute limit of one container on one card: a bucket of GPU time that all its processes share, a few words of
 * the region changed by compare-and-swap and by addition. No lock, no clock of its own: `now` is CLOCK_MONOTONIC,
 * passed in.
 *
 * Tokens are not stored. What is stored is the time at which they are (or were) 0: tokens = (now - zero) x share, at
 * most BUCKET_CAP_NS. So the refill needs nobody to do it, and a process that is killed takes nothing with it. A charge
 * moves the time ahead. */
#ifndef HM_REGION_BUCKET_H
#define HM_REGION_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "contract/region_layout.h"

#define BUCKET_CAP_NS UINT64_C(20000000)     /* of GPU time: the largest burst */
#define BUCKET_ERROR_NS INT64_C(1000000000)  /* the largest correction from outside that is believed */
#define BUCKET_DEBT_NS UINT64_C(10000000000) /* the longest wait for a refill; more is nonsense, or forgiven */
#define BUCKET_OUTSIDE_NS BUCKET_DEBT_NS     /* how far ahead a moment written from outside may lie */

/* Is a moment that was written from outside (region_compute's ..._until_ns) still ahead, and believed? */
static inline bool bucket_is_ahead(uint64_t moment, uint64_t now)
{
	return moment > now && moment - now <= BUCKET_OUTSIDE_NS;
}

/* What a nanosecond of measured span counts for, in 1/65536 (region_compute.alpha; 0 there, or said for a time that is
 * over: not known, so 1). */
enum { BUCKET_ALPHA_ONE = 65536, BUCKET_ALPHA_MIN = 3277 /* 0.05 */, BUCKET_ALPHA_MAX = 78643 /* 1.2 */ };

/* Takes raw_ns of GPU time if there are tokens, however few: they may go below 0. Returns 0, or the nanoseconds until
 * there are some. share: percent, 1 to 100. */
uint64_t bucket_take(struct region_compute *c, unsigned share, uint64_t now, uint64_t raw_ns);
/* Charges (or, negative, returns) what a launch turned out to take beyond what was taken for it. */
void bucket_settle(struct region_compute *c, unsigned share, uint64_t now, int64_t raw_ns);

#endif
