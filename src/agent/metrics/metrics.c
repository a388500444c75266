#include "agent/metrics/metrics.h"

#include "agent/metrics/metrics_page.h"
#include "base/log.h"
#include "kube/stats_page.h"

static const struct prom_family families[METRIC_COUNT] = {
#define M(id, name, type, labels, help) [METRIC_##id] = { name, PROM_##type, help },
#include "agent/metrics/metrics.def"
#undef M
};

const struct prom_family *metrics_begin(struct str *out, enum metric m)
{
	prom_add_head(out, &families[m]);
	return &families[m];
}

const char *metrics_node(const struct metrics_sources *s)
{
	return s->options->node_name != NULL ? s->options->node_name : "";
}

static void add_info(const struct metrics_sources *s, struct str *out)
{
	prom_add(out, metrics_begin(out, METRIC_BUILD_INFO),
		 PROM_LABELS({ "version", HM_VERSION }, { "compiler", HM_COMPILER }, { "platform", HM_PLATFORM }), 1);
	prom_add(out, metrics_begin(out, METRIC_AGENT_INFO),
		 PROM_LABELS({ "node", metrics_node(s) }, { "mode", s->options->mode },
			     { "binding", s->options->binding }),
		 1);
}

static void add_claims(const struct metrics_sources *s, struct str *out)
{
	uint64_t counts[] = { [CLAIM_ALLOCATED] = 0, [CLAIM_ACTIVE] = 0, [CLAIM_ENDED] = 0 };
	const struct prom_family *f = metrics_begin(out, METRIC_CLAIMS);

	for (size_t i = 0; i < claims_count(s->claims); i++)
		counts[claims_at(s->claims, i)->state]++;
	for (unsigned state = 0; state < HM_COUNT(counts); state++)
		prom_add(out, f, PROM_LABELS({ "state", claim_state_name((enum claim_state)state) }), counts[state]);
}

/* ---- the kubelet's calls, by resource */

typedef void resource_adder(struct str *out, const struct prom_family *f, const struct resource *r, const char *name);

static void add_registered(struct str *out, const struct prom_family *f, const struct resource *r, const char *name)
{
	prom_add(out, f, PROM_LABELS({ "resource", name }), resource_is_registered(r));
}

static void add_allocations(struct str *out, const struct prom_family *f, const struct resource *r, const char *name)
{
	prom_add(out, f, PROM_LABELS({ "resource", name }), resource_stats(r).allocations);
}

static void add_allocation_errors(struct str *out, const struct prom_family *f, const struct resource *r,
				  const char *name)
{
	prom_add(out, f, PROM_LABELS({ "resource", name }), resource_stats(r).allocate_errors);
}

static void add_starts(struct str *out, const struct prom_family *f, const struct resource *r, const char *name)
{
	const struct service_stats stats = resource_stats(r);

	prom_add(out, f, PROM_LABELS({ "resource", name }, { "result", "ok" }), stats.starts);
	prom_add(out, f, PROM_LABELS({ "resource", name }, { "result", "error" }), stats.start_errors);
}

static void add_unseen(struct str *out, const struct prom_family *f, const struct resource *r, const char *name)
{
	prom_add(out, f, PROM_LABELS({ "resource", name }), resource_stats(r).unseen);
}

static void add_latency(struct str *out, const struct prom_family *f, const struct latency *l, const char *name)
{
	static const uint64_t bounds[LATENCY_BOUNDS] = LATENCY_BOUNDS_US;
	const struct prom_buckets b = { bounds, l->buckets, LATENCY_BOUNDS, l->sum_us };

	prom_add_histogram(out, f, PROM_LABELS({ "resource", name }), &b);
}

static void add_allocate_seconds(struct str *out, const struct prom_family *f, const struct resource *r,
				 const char *name)
{
	const struct service_stats stats = resource_stats(r);

	add_latency(out, f, &stats.allocate, name);
}

static void add_start_seconds(struct str *out, const struct prom_family *f, const struct resource *r, const char *name)
{
	const struct service_stats stats = resource_stats(r);

	add_latency(out, f, &stats.start, name);
}

static void add_resources(const struct metrics_sources *s, struct str *out)
{
	static const struct {
		enum metric metric;
		resource_adder *add;
	} parts[] = {
		{ METRIC_REGISTERED, add_registered },
		{ METRIC_ALLOCATIONS, add_allocations },
		{ METRIC_ALLOCATION_ERRORS, add_allocation_errors },
		{ METRIC_STARTS, add_starts },
		{ METRIC_UNSEEN, add_unseen },
		{ METRIC_ALLOCATE_SECONDS, add_allocate_seconds },
		{ METRIC_START_SECONDS, add_start_seconds },
	};

	for (size_t i = 0; i < HM_COUNT(parts); i++) {
		const struct prom_family *f = metrics_begin(out, parts[i].metric);

		for (size_t k = 0; k < s->resource_count; k++)
			parts[i].add(out, f, s->resources[k], resource_offer(s->resources[k])->resource);
	}
}

/* ---- the API server */

static void add_reload(const struct reload *r, struct str *out)
{
	const struct prom_family *f;
	struct reload_stats stats;

	if (r == NULL)
		return;
	stats = reload_stats(r);
	f = metrics_begin(out, METRIC_RELOADS);
	prom_add(out, f, PROM_LABELS({ "result", "applied" }), stats.applied);
	prom_add(out, f, PROM_LABELS({ "result", "refused" }), stats.refused);
	prom_add(out, metrics_begin(out, METRIC_CONFIG_REFUSED), NULL, stats.trouble[0] != '\0');
}

static void add_api(const struct metrics_sources *s, struct str *out)
{
	struct cluster_stats stats = { 0 };
	const struct prom_family *f;

	if (s->cluster != NULL)
		cluster_stats(s->cluster, &stats);
	if (stats.requests == NULL)
		return;
	kube_stats_add_requests(stats.requests, metrics_begin(out, METRIC_API_REQUESTS), out);
	kube_stats_add_seconds(stats.requests, metrics_begin(out, METRIC_API_SECONDS), out);
	prom_add(out, metrics_begin(out, METRIC_API_RETRIES), NULL, stats.requests->retries);
	prom_add(out, metrics_begin(out, METRIC_API_THROTTLED), NULL, stats.requests->throttled);
	f = metrics_begin(out, METRIC_EVENTS);
	prom_add(out, f, PROM_LABELS({ "result", "sent" }), stats.events.sent);
	prom_add(out, f, PROM_LABELS({ "result", "merged" }), stats.events.merged);
	prom_add(out, f, PROM_LABELS({ "result", "limited" }), stats.events.limited);
	prom_add(out, f, PROM_LABELS({ "result", "dropped" }), stats.events.dropped);
}

static void add_publish(const struct metrics_sources *s, struct str *out)
{
	struct publish_stats stats;
	const struct prom_family *f;

	if (s->publish == NULL)
		return;
	publish_stats(s->publish, &stats);
	f = metrics_begin(out, METRIC_PUBLISH_PASSES);
	prom_add(out, f, PROM_LABELS({ "result", "ok" }), stats.passes - stats.failures);
	prom_add(out, f, PROM_LABELS({ "result", "error" }), stats.failures);
	f = metrics_begin(out, METRIC_PUBLISH_WRITES);
	prom_add(out, f, PROM_LABELS({ "reason", "changed" }), stats.writes - stats.healed);
	prom_add(out, f, PROM_LABELS({ "reason", "healed" }), stats.healed);
	if (stats.good)
		prom_add_micros(out, metrics_begin(out, METRIC_PUBLISH_AGE), NULL, stats.good_age_ms * 1000);
}

static void add_late(const struct hami_late_stats *late, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_LATE_STARTS);

	prom_add(out, f, PROM_LABELS({ "kind", "first" }), late->starts);
	prom_add(out, f, PROM_LABELS({ "kind", "restart" }), late->restarts);
	f = metrics_begin(out, METRIC_REFUSALS);
	for (unsigned i = 0; i < HAMI_REFUSALS; i++)
		prom_add(out, f, PROM_LABELS({ "reason", hami_refusal_name((enum hami_refusal)i) }), late->refused[i]);
	prom_add(out, metrics_begin(out, METRIC_MISMATCHES), NULL, late->mismatches);
	prom_add(out, metrics_begin(out, METRIC_UNSIGNED), NULL, late->unsigned_ok);
	prom_add(out, metrics_begin(out, METRIC_DISABLE_CONTROL), NULL, late->disable_control);
	f = metrics_begin(out, METRIC_PREFERRED);
	prom_add(out, f, PROM_LABELS({ "result", "steered" }), late->steered);
	prom_add(out, f, PROM_LABELS({ "result", "blind" }), late->not_steered);
}

static void add_classic(const struct hami_classic_stats *classic, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_CLASSIC);
	const struct {
		const char *what;
		uint64_t count;
	} counts[] = {
		{ "answer", classic->answers },      { "lock", classic->by_lock }, { "guess", classic->by_order },
		{ "again", classic->again },         { "moved", classic->moved },  { "misplaced", classic->misplaced },
		{ "visible", classic->own_visible },
	};

	for (size_t i = 0; i < HM_COUNT(counts); i++)
		prom_add(out, f, PROM_LABELS({ "what", counts[i].what }), counts[i].count);
}

static void add_pods(const struct metrics_sources *s, struct str *out)
{
	struct hami_pods_stats stats;
	const struct prom_family *f;

	if (s->pods == NULL)
		return;
	hami_pods_stats(s->pods, &stats);
	prom_add(out, metrics_begin(out, METRIC_PODS), NULL, stats.pods.pods);
	add_late(&stats.late, out);
	prom_add(out, metrics_begin(out, METRIC_SIGNATURE_KEYS), NULL, stats.signature_keys);
	add_classic(&stats.classic, out);
	f = metrics_begin(out, METRIC_POD_PATCHES);
	prom_add(out, f, PROM_LABELS({ "result", "ok" }), stats.finish.patches);
	prom_add(out, f, PROM_LABELS({ "result", "retried" }), stats.finish.retries);
	prom_add(out, f, PROM_LABELS({ "result", "dropped" }), stats.finish.dropped);
	f = metrics_begin(out, METRIC_LOCK_RELEASES);
	prom_add(out, f, PROM_LABELS({ "result", "ok" }), stats.lock.released);
	prom_add(out, f, PROM_LABELS({ "result", "error" }), stats.lock.failures);
}

/* ---- the page */

int metrics_get(void *sources, struct str *body)
{
	const struct metrics_sources *s = sources;

	add_info(s, body);
	add_claims(s, body);
	add_resources(s, body);
	prom_add_micros(body, metrics_begin(body, METRIC_NVML_HUNG), NULL,
			driver_hung_ms(cards_driver(s->cards)) * 1000);
	add_reload(s->reload, body);
	add_api(s, body);
	add_publish(s, body);
	add_pods(s, body);
	metrics_add_cards(s, body);
	metrics_add_containers(s, body);
	metrics_add_mig(s, body);
	return 200;
}

int metrics_serve(struct loop *l, const char *address, struct metrics_sources *sources, struct http_server **out,
		  struct hm_err *e)
{
	static const struct http_page pages[] = { { .path = "/metrics", .get = metrics_get } };

	if (http_server_new(l, address, pages, HM_COUNT(pages), sources, out, e) < 0)
		return hm_err_wrap(e, "--metrics-bind-address");
	log_info("serving metrics", KV("address", address), KV_U64("port", http_server_port(*out)));
	return 0;
}
