#include "sched/metrics/metrics.h"

#include <stdlib.h>

#include "core/fmt.h"
#include "sched/metrics/metrics_page.h"
#include "sched/options/version.h"

static const struct prom_family families[METRIC_COUNT] = {
#define M(id, name, type, labels, help) [METRIC_##id] = { name, PROM_##type, help },
#include "sched/metrics/metrics.def"
#undef M
};

const struct prom_family *metrics_family(enum metric m)
{
	return &families[m];
}

const struct prom_family *metrics_begin(struct str *out, enum metric m)
{
	prom_add_head(out, &families[m]);
	return &families[m];
}

static void add_info(struct str *out)
{
	prom_add(out, metrics_begin(out, METRIC_BUILD_INFO),
		 PROM_LABELS({ "version", version_of(VERSION_VERSION) }, { "revision", version_of(VERSION_REVISION) },
			     { "build_date", version_of(VERSION_BUILD_DATE) }, { "go_version", version_of(VERSION_GO) },
			     { "compiler", version_of(VERSION_COMPILER) },
			     { "platform", version_of(VERSION_PLATFORM) }),
		 1);
}

static void add_answers(const struct metrics_sources *s, const struct server_stats *stats, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_REQUESTS);

	for (size_t i = 0; i < s->route_count; i++) {
		for (unsigned c = 2; c < HM_COUNT(stats->routes[i].by_class); c++) {
			char code[8];

			hm_fmt(code, sizeof code, "%uxx", c);
			if (c == 2 || stats->routes[i].by_class[c] > 0)
				prom_add(out, f, PROM_LABELS({ "path", s->routes[i].path }, { "code", code }),
					 stats->routes[i].by_class[c]);
		}
	}
}

static void add_requests(const struct metrics_sources *s, struct str *out)
{
	static const uint64_t bounds[] = LATENCY_BOUNDS_US;
	const struct server_stats *stats = server_stats(s->server);
	const struct prom_family *f;

	add_answers(s, stats, out);
	f = metrics_begin(out, METRIC_REQUEST_SECONDS);
	for (size_t i = 0; i < s->route_count; i++) {
		const struct latency *l = &stats->routes[i].latency;

		prom_add_histogram(out, f, PROM_LABELS({ "path", s->routes[i].path }),
				   &(struct prom_buckets) { bounds, l->buckets, LATENCY_BOUNDS, l->sum_us });
	}
	f = metrics_begin(out, METRIC_IN_HAND);
	for (size_t i = 0; i < s->route_count; i++)
		prom_add(out, f, PROM_LABELS({ "path", s->routes[i].path }), stats->routes[i].in_hand);
	f = metrics_begin(out, METRIC_REFUSED);
	prom_add(out, f, PROM_LABELS({ "reason", "unknown" }), stats->unknown);
	prom_add(out, f, PROM_LABELS({ "reason", "not-admitted" }), stats->not_admitted);
}

static void add_connections(const struct metrics_sources *s, struct str *out)
{
	const struct conns_stats *stats = server_conns_stats(s->server);
	const struct prom_family *f;

	prom_add(out, metrics_begin(out, METRIC_CONNECTIONS), NULL, stats->open);
	prom_add(out, metrics_begin(out, METRIC_ACCEPTED), NULL, stats->accepted);
	f = metrics_begin(out, METRIC_DROPPED);
	for (enum conn_drop d = 0; d < DROP_COUNT; d++)
		prom_add(out, f, PROM_LABELS({ "reason", conn_drop_name(d) }), stats->dropped[d]);
	prom_add(out, metrics_begin(out, METRIC_HELD), NULL, stats->held_bytes);
}

static void add_certificates(const struct metrics_sources *s, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_CERTIFICATES);

	prom_add(out, f, PROM_LABELS({ "result", "used" }), secrets_changes(s->secrets));
	prom_add(out, f, PROM_LABELS({ "result", "refused" }), secrets_refusals(s->secrets));
}

/* ---- the page */

/* Some 0.1 ms of work, and what a socket takes at once. */
enum { PART_BYTES = 32768 };

struct page {
	const struct metrics_sources *sources;
	bool begun;
	struct cluster_walk walk;
};

static void *page_begin(void *arg)
{
	struct page *p = calloc(1, sizeof *p);

	if (p == NULL)
		return NULL;
	p->sources = arg;
	cluster_walk_init(&p->walk, p->sources);
	return p;
}

static void page_end(void *arg)
{
	struct page *p = arg;

	cluster_walk_fini(&p->walk);
	free(p);
}

static void add_own(const struct metrics_sources *s, struct str *out)
{
	add_info(out);
	prom_add(out, metrics_begin(out, METRIC_READY), NULL, s->ready(s->arg));
	prom_add(out, metrics_begin(out, METRIC_DECIDES), NULL, s->decides(s->arg));
	add_requests(s, out);
	add_connections(s, out);
	add_certificates(s, out);
	metrics_add_work(s, out);
}

static bool page_add(void *arg, struct str *out)
{
	struct page *p = arg;

	if (!p->begun)
		add_own(p->sources, out);
	p->begun = true;
	while (out->n < PART_BYTES && !str_failed(out))
		if (!cluster_walk_add(&p->walk, out))
			return false;
	return true;
}

const struct http_parts metrics_parts = { page_begin, page_add, page_end };
