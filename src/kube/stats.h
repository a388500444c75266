/* What the client has done, for metrics. Never reset; read at will. */
#ifndef HM_KUBE_STATS_H
#define HM_KUBE_STATS_H

#include <stdint.h>

enum kube_verb { KUBE_GET, KUBE_POST, KUBE_PUT, KUBE_PATCH, KUBE_DELETE, KUBE_WATCH, KUBE_VERB_COUNT };

/* Upper bounds of the latency histogram in milliseconds; one bucket more holds what is above. */
#define KUBE_LATENCY_BOUNDS_MS                                                                                         \
	{                                                                                                              \
		5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000                                                  \
	}
enum { KUBE_LATENCY_BUCKETS = 12, KUBE_STATS_CODES = 24 };

struct kube_stats {
	/* Answers by HTTP status; code 0: none came. A code that found no place counts under 999. */
	struct kube_stats_code {
		int code;
		uint64_t count[KUBE_VERB_COUNT];
	} codes[KUBE_STATS_CODES];
	unsigned codes_used;
	struct kube_stats_latency {
		uint64_t buckets[KUBE_LATENCY_BUCKETS]; /* each its own, not cumulative */
		uint64_t count, sum_ms;
	} latency[KUBE_VERB_COUNT];  /* of a watch: until its headers came; counted when it ends */
	uint64_t retries, throttled; /* tries again after a failure or a 429; requests that waited for our own rate */
	uint64_t http2;              /* answers that came over HTTP/2 */
	uint64_t token_reads;        /* files read anew with another token in them */
};

const char *kube_verb_name(enum kube_verb v); /* the HTTP method; "WATCH" for a watch */
void kube_stats_count(struct kube_stats *s, enum kube_verb verb, int code, uint64_t latency_ms);

#endif
