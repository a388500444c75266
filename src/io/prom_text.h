/* Metrics in Prometheus' text format 0.0.4: a family's head, then its samples. No numbers but integers and times: what
 * is measured here is counted, so nothing needs floating point. */
#ifndef HM_IO_PROM_TEXT_H
#define HM_IO_PROM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum prom_type { PROM_COUNTER, PROM_GAUGE, PROM_HISTOGRAM };

struct prom_family {
	const char *name;
	enum prom_type type;
	const char *help;
};

/* Values may hold anything: what the format does not take is escaped or replaced by '?'. */
struct prom_label {
	const char *name, *value;
};
#define PROM_LABELS(...) ((const struct prom_label[]) { __VA_ARGS__, { NULL, NULL } })

const char *prom_type_name(enum prom_type t); /* "counter", ... */

/* The HELP and TYPE lines: before the family's first sample, once. */
void prom_add_head(struct str *out, const struct prom_family *f);

/* One sample. `labels` ends at a name of NULL; NULL: none. */
void prom_add(struct str *out, const struct prom_family *f, const struct prom_label *labels, uint64_t value);
/* A time or a share, given in millionths: 1500000 is written as 1.5. */
void prom_add_micros(struct str *out, const struct prom_family *f, const struct prom_label *labels, uint64_t micros);

/* `buckets` has count + 1 numbers, each of its own bucket (not added up): those up to bounds_us[i], the last one of
 * what is above. */
struct prom_buckets {
	const uint64_t *bounds_us, *buckets;
	size_t count;
	uint64_t sum_us;
};
/* A histogram of times: its _bucket, _sum and _count samples, in seconds. */
void prom_add_histogram(struct str *out, const struct prom_family *f, const struct prom_label *labels,
			const struct prom_buckets *b);

#endif
