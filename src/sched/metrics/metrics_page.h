/* The parts of /metrics, for sched/metrics/metrics*.c alone. */
#ifndef HM_SCHED_METRICS_METRICS_PAGE_H
#define HM_SCHED_METRICS_METRICS_PAGE_H

#include "io/prom_text.h"
#include "sched/metrics/metrics.h"

enum metric {
#define M(id, name, type, labels, help) METRIC_##id,
#include "sched/metrics/metrics.def"
#undef M
	METRIC_COUNT
};

const struct prom_family *metrics_family(enum metric m);
/* The family's head is written, and the family returned for its samples. */
const struct prom_family *metrics_begin(struct str *out, enum metric m);

/* What was decided and bound, what the watches know, what was asked of the API server. */
void metrics_add_work(const struct metrics_sources *s, struct str *out);

/* Cards, quotas and containers, by HAMi's names; its former names, too, where they are wanted: a page under way. A
 * family's samples stand together, so all nodes are walked for each. */
struct cluster_walk {
	const struct metrics_sources *sources;
	struct str nodes; /* names when it began, each with its NUL: the cluster may change meanwhile */
	size_t family, at;
};

void cluster_walk_init(struct cluster_walk *w, const struct metrics_sources *s);
void cluster_walk_fini(struct cluster_walk *w);
/* One family of one node; false where all is told. */
bool cluster_walk_add(struct cluster_walk *w, struct str *out);

#endif
