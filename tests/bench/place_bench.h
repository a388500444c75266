/* What the benches of placement share: nodes, CPU time, percentiles. */
#ifndef HM_TESTS_BENCH_PLACE_BENCH_H
#define HM_TESTS_BENCH_PLACE_BENCH_H

#include <stdio.h>
#include <time.h>

#include "model/placement/cluster.h"

enum { CARD_MIB = 40000 };

static inline void name_node(char *out, size_t cap, uint64_t i)
{
	snprintf(out, cap, "gpu-node-%05llu.example.com", (unsigned long long)i);
}

static inline void name_card(char *out, size_t cap, uint64_t node, uint64_t i)
{
	snprintf(out, cap, "GPU-%08llx-1111-4222-8333-%012llx", (unsigned long long)node, (unsigned long long)i);
}

/* Not in the cluster yet; NULL: no memory. So many of its cards are in a NUMA node. */
static inline struct node_state *make_node(struct cluster *c, uint64_t number, uint64_t cards, uint64_t numa_cards)
{
	char name[64];
	struct node_state *n;
	struct hm_err e;

	name_node(name, sizeof name, number);
	n = node_state_new(name, cluster_texts(c));
	for (uint64_t i = 0; n != NULL && i < cards; i++) {
		struct node_card card = { .count = 10,
					  .memory_mib = CARD_MIB,
					  .cores = 100,
					  .index = (uint32_t)i,
					  .numa = (int32_t)(i / numa_cards),
					  .healthy = true,
					  .type = "NVIDIA A100-SXM4-40GB",
					  .mode = "hami-core" };
		name_card(card.uuid, sizeof card.uuid, number, i);
		if (node_state_add_card(n, &card, &e) < 0) {
			node_state_free(n);
			return NULL;
		}
	}
	return n;
}

/* Of this thread. */
static inline double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* For qsort. */
static inline int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static inline double percentile(const double *sorted, size_t n, unsigned p)
{
	return sorted[n * p / 100 < n ? n * p / 100 : n - 1];
}

#endif
