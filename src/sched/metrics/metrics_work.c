#include "kube/stats_page.h"
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
	const struct admission_stats *admissions = admission_stats(s->admission);
	struct bind_stats binds;

	binder_stats(s->binder, &binds);
	add_results(out, METRIC_PLACEMENTS, "result",
		    RESULTS({ "placed", filters->placed }, { "nowhere", filters->nowhere },
			    { "error", filters->failed }, { "passed", filters->passed }, { "asked", filters->asked }));
	add_results(out, METRIC_ADMISSIONS, "result",
		    RESULTS({ "patched", admissions->patched }, { "unchanged", admissions->unchanged },
			    { "refused", admissions->refused }, { "error", admissions->failed }));
	prom_add(out, metrics_begin(out, METRIC_WARNINGS), NULL, admissions->warnings);
	add_results(out, METRIC_BINDS, "result",
		    RESULTS({ "bound", binds.bound }, { "failed", binds.failed }, { "contended", binds.contended },
			    { "again", binds.posts_again }));
	add_results(
		out, METRIC_BINDS_IN_HAND, "state",
		RESULTS({ "in-hand", binds.in_hand }, { "waiting", binds.waiting }, { "in-doubt", binds.in_doubt }));
}

static void add_silent(const struct view_stats *view, struct str *out)
{
	const struct result silent[] = { { "nodes", view->silent_ms.nodes / 1000 },
					 { "pods", view->silent_ms.pods / 1000 },
					 { "quotas", view->silent_ms.quotas / 1000 },
					 { "budgets", view->silent_ms.budgets / 1000 } };

	add_results(out, METRIC_WATCH_SILENT, "object", silent, HM_COUNT(silent) - view->without_budgets);
}

static void add_view(const struct metrics_sources *s, struct str *out)
{
	struct view_stats view;

	view_stats(s->view, &view);
	add_results(out, METRIC_NODES, "state",
		    RESULTS({ "all", view.nodes }, { "with-cards", view.nodes_with_cards }));
	prom_add(out, metrics_begin(out, METRIC_HOLDINGS), NULL, cluster_holding_count(s->cluster));
	prom_add(out, metrics_begin(out, METRIC_DOUBTED), NULL, view.doubted);
	prom_add(out, metrics_begin(out, METRIC_SIGNS), NULL, s->keys != NULL && signature_keys_can_sign(s->keys));
	add_silent(&view, out);
	prom_add(out, metrics_begin(out, METRIC_WATCH_FAILURES), NULL, view.failures);
}

void metrics_add_work(const struct metrics_sources *s, struct str *out)
{
	const struct kube_stats *k = kube_client_stats(s->client);

	add_decisions(s, out);
	add_view(s, out);
	kube_stats_add_requests(k, metrics_begin(out, METRIC_API_REQUESTS), out);
	kube_stats_add_seconds(k, metrics_begin(out, METRIC_API_SECONDS), out);
	prom_add(out, metrics_begin(out, METRIC_API_RETRIES), NULL, k->retries);
	prom_add(out, metrics_begin(out, METRIC_API_THROTTLED), NULL, k->throttled);
}
