/* What time slicing does to spans, repaired: where several containers share a card, the span of a kernel contains the
 * others' slices. Two corrections, for whoever sees the driver's samples of GPU time by process:
 *  - alpha, the driver's GPU time of the container over the spans that it measured, both as sums that decay with one
 *    time constant: what a nanosecond of span counts for;
 *  - the error, what a sample says beyond what was charged in its time: alpha is late by nature, and follows a pattern
 * of launches that follows alpha; a part of the error is charged at once, which damps that. Pure arithmetic, no clock.
 * docs/enforcement.md */
#ifndef HM_REGION_ALPHA_H
#define HM_REGION_ALPHA_H

#include <stdint.h>

enum { ALPHA_HISTORY = 16 };
#define ALPHA_ERROR_PART 0.4
#define ALPHA_TAU_NS UINT64_C(1000000000)

struct alpha {
	double used, raw;    /* decayed sums, ns */
	uint64_t sampled_ns; /* the end of the last sample */
	uint64_t value;      /* in 1/65536; 0: not known yet */
	int64_t error_ns;    /* to be charged, since the beginning */
	struct {
		uint64_t at_ns, spans_ns;
	} history[ALPHA_HISTORY]; /* region_compute.spans_ns, as it stood then: samples come late */
	unsigned count;
};

/* Notes what the container has measured by now. */
void alpha_note(struct alpha *a, uint64_t now, uint64_t spans_ns);
/* A sample: the driver's GPU time of the container between two moments. Moves value and error_ns, as the region holds
 * them. */
void alpha_sample(struct alpha *a, uint64_t from_ns, uint64_t to_ns, uint64_t used_ns);
/* The same, where nobody else used the card in that time: spans contain nobody's slices, so they are right. What they
 * say of a sample is not: a long kernel is charged at its launch, and used in the samples after. */
void alpha_sample_alone(struct alpha *a, uint64_t from_ns, uint64_t to_ns, uint64_t used_ns);
/* What was learned is no longer believed; the error stays. */
void alpha_forget(struct alpha *a);

#endif
