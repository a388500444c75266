#include "core/fmt.h"
#include "sched/metrics/metrics_page.h"

struct result {
	const char *name;
	uint64_t value;
};

static void add_results(struct str *out, enum metric m, const char *label, const struct result *results, size_t count)
{
	const struct prom_family *f = metrics_begin(out, m);

	for (size_t i = 0; i < count; i++)
		prom_add(out, f, PROM_LABELS({ label, results[i].name }), results[i].value);
}
#define RESULTS(...) ((const struct result[]) { __VA_ARGS__ }), HM_COUNT(((const struct result[]) { __VA_ARGS__ }))

static void add_decisions(const struct metrics_sources *s, struct str *out)
{
	const struct filter_stats *filters = filter_stats(s->filter);
	struct bind_stats binds;

	binder_stats(s->binder, &binds);
	add_results(out, METRIC_PLACEMENTS, "result",
		    RESULTS({ "placed", filters->placed }, { "nowhere", filters->nowhere },
			    { "error", filters->failed }, { "passed", filters->passed }, { "asked", filters->asked }));
	add_results(out, METRIC_BINDS, "result",
		    RESULTS({ "bound", binds.bound }, { "failed", binds.failed }, { "contended", binds.contended },
			    { "again", binds.posts_again }));
	add_results(
		out, METRIC_BINDS_IN_HAND, "state",
		RESULTS({ "in-hand", binds.in_hand }, { "waiting", binds.waiting }, { "in-doubt", binds.in_doubt }));
}

static void add_view(const struct metrics_sources *s, struct str *out)
{
	struct view_stats view;

	view_stats(s->view, &view);
	add_results(out, METRIC_NODES, "state",
		    RESULTS({ "all", view.nodes }, { "with-cards", view.nodes_with_cards }));
	prom_add(out, metrics_begin(out, METRIC_HOLDINGS), NULL, cluster_holding_count(s->cluster));
	prom_add(out, metrics_begin(out, METRIC_DOUBTED), NULL, view.doubted);
	prom_add(out, metrics_begin(out, METRIC_WATCH_FAILURES), NULL, view.failures);
}

static void add_api_requests(const struct kube_stats *k, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_API_REQUESTS);

	for (unsigned i = 0; i < k->codes_used; i++) {
		char code[12];

		hm_fmt(code, sizeof code, "%d", k->codes[i].code);
		for (enum kube_verb verb = 0; verb < KUBE_VERB_COUNT; verb++)
			if (k->codes[i].count[verb] > 0)
				prom_add(out, f, PROM_LABELS({ "verb", kube_verb_name(verb) }, { "code", code }),
					 k->codes[i].count[verb]);
	}
}

static void add_api_seconds(const struct kube_stats *k, struct str *out)
{
	static const uint64_t bounds_ms[] = KUBE_LATENCY_BOUNDS_MS;
	const struct prom_family *f = metrics_begin(out, METRIC_API_SECONDS);
	uint64_t bounds_us[HM_COUNT(bounds_ms)];

	for (size_t i = 0; i < HM_COUNT(bounds_ms); i++)
		bounds_us[i] = bounds_ms[i] * 1000;
	for (enum kube_verb verb = 0; verb < KUBE_VERB_COUNT; verb++) {
		const struct kube_stats_latency *l = &k->latency[verb];
		const struct prom_buckets b = { bounds_us, l->buckets, HM_COUNT(bounds_ms), l->sum_ms * 1000 };

		if (l->count > 0)
			prom_add_histogram(out, f, PROM_LABELS({ "verb", kube_verb_name(verb) }), &b);
	}
}

void metrics_add_work(const struct metrics_sources *s, struct str *out)
{
	const struct kube_stats *k = kube_client_stats(s->client);

	add_decisions(s, out);
	add_view(s, out);
	add_api_requests(k, out);
	add_api_seconds(k, out);
	prom_add(out, metrics_begin(out, METRIC_API_RETRIES), NULL, k->retries);
	prom_add(out, metrics_begin(out, METRIC_API_THROTTLED), NULL, k->throttled);
}
