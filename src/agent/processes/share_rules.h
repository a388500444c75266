/* What follows for one container on one card from what was seen of all of them: pure, times are passed in. */
#ifndef HM_AGENT_PROCESSES_SHARE_RULES_H
#define HM_AGENT_PROCESSES_SHARE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "region/alpha.h"
#include "region/limit_file.h"
#include "region/region.h"

#define SHARE_RULES_MS UINT64_C(1000000)
/* Who was at work so lately still is: pauses of a program that computes are shorter. */
#define SHARE_LATELY_NS (1000 * SHARE_RULES_MS)
/* How long what is written holds, should its writer hang or end; closing is written at once. */
#define SHARE_KEEP_NS (3000 * SHARE_RULES_MS)
/* After a card was open to a container its launches count again, but what it launched before is still at work. */
#define SHARE_SETTLE_NS (500 * SHARE_RULES_MS)
/* The shortest time that a sample stands for: the drivers' is 1/6 s. */
#define SHARE_SAMPLE_LEAST_NS (100 * SHARE_RULES_MS)
/* Samples without a process of a container that charges time all the while: they do not see it. */
enum { SHARE_UNSEEN = 5 };

/* A container on a card. */
struct share {
	int device;    /* its place among the sampler's cards; -1: none */
	unsigned card; /* its place in the region */
	unsigned cores, priority;
	enum limit_policy policy;
	bool held; /* from elsewhere: HAMi's monitor */
	struct alpha alpha;
	uint64_t error_base;         /* of region_orders.error_ns: what stood there before us */
	uint64_t spans_ns;           /* the region's, as last read */
	uint64_t busy_ns;            /* of the card's time, by all samples */
	uint64_t at_work_ns;         /* when it was last seen at work; 0: never */
	uint64_t counted_ns;         /* since when its launches count */
	unsigned used_percent;       /* in the sample at hand */
	unsigned unseen;             /* samples */
	bool moved;                  /* it has charged time since the last sample */
	struct region_orders stands; /* what the region says */
};

/* A card, as one pass found it. */
struct share_card {
	bool seen;               /* the driver answered */
	uint64_t from_ns, to_ns; /* the sample; equal: none came */
	unsigned used_percent;   /* of it, by all */
	bool strangers;          /* processes of no container of ours are at work */
	unsigned at_work[2];     /* containers, by priority */
};

static inline bool share_is_limited(const struct share *s)
{
	return s->cores < 100 && s->policy != LIMIT_POLICY_DISABLE;
}

static inline bool share_is_at_work(uint64_t since_ns, uint64_t now)
{
	return since_ns != 0 && (since_ns >= now || now - since_ns <= SHARE_LATELY_NS);
}

/* The region was read: what was charged by now, and what stands. */
void share_note(struct share *s, uint64_t now, uint64_t spans_ns, const struct region_orders *stands);
/* A sample of the card has come, and used_percent says what of it was the container's. */
void share_sample(struct share *s, const struct share_card *card, uint64_t now);
/* What is to stand in the region. */
struct region_orders share_orders(const struct share *s, const struct share_card *card, uint64_t now);

#endif
