/* The parts of /metrics, for agent/metrics/metrics*.c alone. */
#ifndef HM_AGENT_METRICS_METRICS_PAGE_H
#define HM_AGENT_METRICS_METRICS_PAGE_H

#include "agent/metrics/metrics.h"
#include "io/prom_text.h"

enum metric {
#define M(id, name, type, labels, help) METRIC_##id,
#include "agent/metrics/metrics.def"
#undef M
	METRIC_COUNT
};

/* The family's head is written, and the family returned for its samples. */
const struct prom_family *metrics_begin(struct str *out, enum metric m);

const char *metrics_node(const struct metrics_sources *s); /* "" where nobody told us our node's name */

void metrics_add_cards(const struct metrics_sources *s, struct str *out);
void metrics_add_mig(const struct metrics_sources *s, struct str *out);
void metrics_add_containers(const struct metrics_sources *s, struct str *out);

#endif
