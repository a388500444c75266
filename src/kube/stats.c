#include "kube/stats.h"

#include "core/macros.h"

const char *kube_verb_name(enum kube_verb v)
{
	static const char *const names[KUBE_VERB_COUNT] = { "GET", "POST", "PUT", "PATCH", "DELETE", "WATCH" };

	return names[v];
}

static struct kube_stats_code *place_of(struct kube_stats *s, int code)
{
	for (unsigned i = 0; i < s->codes_used; i++) {
		if (s->codes[i].code == code)
			return &s->codes[i];
	}
	/* The last place is kept for those that find none. */
	if (s->codes_used + 1 >= KUBE_STATS_CODES) {
		s->codes_used = KUBE_STATS_CODES;
		s->codes[KUBE_STATS_CODES - 1].code = 999;
		return &s->codes[KUBE_STATS_CODES - 1];
	}
	s->codes[s->codes_used].code = code;
	return &s->codes[s->codes_used++];
}

void kube_stats_count(struct kube_stats *s, enum kube_verb verb, int code, uint64_t latency_ms)
{
	static const uint64_t bounds[] = KUBE_LATENCY_BOUNDS_MS;
	struct kube_stats_latency *l = &s->latency[verb];
	unsigned i = 0;

	place_of(s, code)->count[verb]++;
	while (i < HM_COUNT(bounds) && latency_ms > bounds[i])
		i++;
	l->buckets[i]++;
	l->count++;
	l->sum_ms += latency_ms;
}
