#include <stdlib.h>
#include <string.h>

#include "agent/metrics/metrics_page.h"
#include "base/array.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "region/region.h"

/* A container on a card: what it was promised by its claim, what it uses by its region, which it can write itself. */
struct row {
	const struct claim *claim;
	const struct claim_card *promised;
	char vdevice[12];
	bool readable; /* the region: */
	struct region_card used;
};

struct trouble {
	const struct claim *claim;
	uint64_t count;
};

struct rows {
	struct row *items;
	size_t count, cap;
	struct trouble *troubles;
	size_t trouble_count, trouble_cap;
};

static bool same_container(const struct claim *a, const struct claim *b)
{
	return strcmp(a->pod_name, b->pod_name) == 0 && strcmp(a->container, b->container) == 0 &&
	       strcmp(a->pod_namespace, b->pod_namespace) == 0;
}

/* Shown are live containers by the name of their pod. One series stands once: of a pod that was made again under its
 * name, whose former claim is not cleaned up yet, the new one is shown. */
static bool is_shown(const struct claims *claims, const struct claim *c)
{
	if (c->state != CLAIM_ACTIVE || c->pod_name[0] == '\0' || c->container[0] == '\0')
		return false;
	for (size_t i = 0; i < claims_count(claims); i++) {
		const struct claim *other = claims_at(claims, i);

		if (other->state == CLAIM_ACTIVE && other->number > c->number && same_container(other, c))
			return false;
	}
	return true;
}

static void fill_used(struct row *row, const struct region_snapshot *region)
{
	for (size_t i = 0; i < region->card_count; i++)
		if (strcmp(region->cards[i].uuid, row->promised->uuid) == 0) {
			row->used = region->cards[i];
			row->readable = true;
		}
}

static bool collect_claim(const struct metrics_sources *s, const struct claim *c, struct rows *rows)
{
	struct agent_path path = agent_path_alloc(s->paths, c->number, HM_ALLOC_REGION);
	struct region_snapshot region = { 0 };
	struct hm_err e;
	bool readable = region_snapshot(path.s, &region, &e) == 0;

	for (size_t i = 0; i < c->card_count; i++) {
		struct row row = { .claim = c, .promised = &c->cards[i] };

		hm_fmt(row.vdevice, sizeof row.vdevice, "%zu", i);
		if (readable)
			fill_used(&row, &region);
		if (!HM_PUSH(rows->items, rows->count, rows->cap, row))
			return false;
	}
	return !readable ||
	       HM_PUSH(rows->troubles, rows->trouble_count, rows->trouble_cap, (struct trouble) { c, region.troubles });
}

/* Where memory is short, as many as there is room for. */
static void collect(const struct metrics_sources *s, struct rows *rows)
{
	for (size_t i = 0; i < claims_count(s->claims); i++) {
		const struct claim *c = claims_at(s->claims, i);

		if (is_shown(s->claims, c) && !collect_claim(s, c, rows))
			return;
	}
}

static uint64_t limit_bytes(const struct row *r)
{
	return r->promised->memory_bytes;
}

static uint64_t cores_micros(const struct row *r)
{
	return r->promised->cores * UINT64_C(10000);
}

static uint64_t used_bytes(const struct row *r)
{
	return r->used.used_bytes;
}

static uint64_t peak_bytes(const struct row *r)
{
	return r->used.peak_bytes;
}

static uint64_t busy_micros(const struct row *r)
{
	return r->used.spans_ns / 1000;
}

static uint64_t refused(const struct row *r)
{
	return r->used.refused;
}

static uint64_t spilled(const struct row *r)
{
	return r->used.spilled;
}

static const struct column {
	enum metric metric;
	bool promised; /* not from the region */
	void (*add)(struct str *out, const struct prom_family *f, const struct prom_label *labels, uint64_t value);
	uint64_t (*value)(const struct row *r);
} columns[] = {
	{ METRIC_VGPU_USED, false, prom_add, used_bytes },
	{ METRIC_VGPU_LIMIT, true, prom_add, limit_bytes },
	{ METRIC_CONTAINER_USED, false, prom_add, used_bytes },
	{ METRIC_VGPU_PEAK, false, prom_add, peak_bytes },
	{ METRIC_VGPU_CORES, true, prom_add_micros, cores_micros },
	{ METRIC_VGPU_BUSY, false, prom_add_micros, busy_micros },
	{ METRIC_VGPU_REFUSED, false, prom_add, refused },
	{ METRIC_VGPU_SPILLED, false, prom_add, spilled },
};

static void add_column(const struct rows *rows, const struct column *c, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, c->metric);

	for (size_t i = 0; i < rows->count; i++) {
		const struct row *r = &rows->items[i];
		const struct prom_label labels[] = { { "namespace", r->claim->pod_namespace },
						     { "pod", r->claim->pod_name },
						     { "container", r->claim->container },
						     { "vdevice_index", r->vdevice },
						     { "device_uuid", r->promised->uuid },
						     { "zone", "vGPU" },
						     { NULL, NULL } };

		if (r->readable || c->promised)
			c->add(out, f, labels, c->value(r));
	}
}

static void add_troubles(const struct rows *rows, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_VGPU_TROUBLES);

	for (size_t i = 0; i < rows->trouble_count; i++) {
		const struct claim *c = rows->troubles[i].claim;

		prom_add(out, f,
			 PROM_LABELS({ "namespace", c->pod_namespace }, { "pod", c->pod_name },
				     { "container", c->container }, { "zone", "vGPU" }),
			 rows->troubles[i].count);
	}
}

void metrics_add_containers(const struct metrics_sources *s, struct str *out)
{
	struct rows rows = { 0 };

	collect(s, &rows);
	for (size_t i = 0; i < HM_COUNT(columns); i++)
		add_column(&rows, &columns[i], out);
	add_troubles(&rows, out);
	free(rows.items);
	free(rows.troubles);
}
