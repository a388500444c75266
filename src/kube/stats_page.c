#include "kube/stats_page.h"

#include "core/fmt.h"
#include "core/macros.h"

void kube_stats_add_requests(const struct kube_stats *s, const struct prom_family *f, struct str *out)
{
	for (unsigned i = 0; i < s->codes_used; i++) {
		char code[12];

		hm_fmt(code, sizeof code, "%d", s->codes[i].code);
		for (enum kube_verb verb = 0; verb < KUBE_VERB_COUNT; verb++)
			if (s->codes[i].count[verb] > 0)
				prom_add(out, f, PROM_LABELS({ "verb", kube_verb_name(verb) }, { "code", code }),
					 s->codes[i].count[verb]);
	}
}

void kube_stats_add_seconds(const struct kube_stats *s, const struct prom_family *f, struct str *out)
{
	static const uint64_t bounds_ms[] = KUBE_LATENCY_BOUNDS_MS;
	uint64_t bounds_us[HM_COUNT(bounds_ms)];

	for (size_t i = 0; i < HM_COUNT(bounds_ms); i++)
		bounds_us[i] = bounds_ms[i] * 1000;
	for (enum kube_verb verb = 0; verb < KUBE_VERB_COUNT; verb++) {
		const struct kube_stats_latency *l = &s->latency[verb];
		const struct prom_buckets b = { bounds_us, l->buckets, HM_COUNT(bounds_ms), l->sum_ms * 1000 };

		if (l->count > 0)
			prom_add_histogram(out, f, PROM_LABELS({ "verb", kube_verb_name(verb) }), &b);
	}
}
