#include <string.h>

#include "agent/metrics/metrics_page.h"
#include "core/fmt.h"

enum { STATES = 3 }; /* of a claim */

/* One card as the page shows it. */
struct card_row {
	const struct card *card;
	char index[12], type[112];
	bool healthy;
	uint64_t offered, slots[STATES];
	uint64_t promised_bytes, promised_cores;
};

struct card_rows {
	struct card_row items[HM_MAX_CARDS];
	size_t count;
};

/* HAMi's name of a model: always with the vendor before it. */
static void fill_row(struct card_row *row, const struct fleet *fleet, const struct card *card)
{
	*row = (struct card_row) { .card = card, .healthy = fleet_is_healthy(fleet, card) };
	hm_fmt(row->index, sizeof row->index, "%u", card->index);
	hm_fmt(row->type, sizeof row->type, "NVIDIA-%s", card->model);
}

/* A device's id begins with its card's; a MIG device's is its own. */
static bool is_of(const struct card *card, const char *id)
{
	return strncmp(id, card->uuid, strlen(card->uuid)) == 0 || mig_find_device(&card->mig, id) != NULL;
}

/* Whose id this is. `near` is tried first. */
static struct card_row *row_of(struct card_rows *rows, const char *id, struct card_row *near)
{
	if (near != NULL && is_of(near->card, id))
		return near;
	for (size_t i = 0; i < rows->count; i++)
		if (is_of(rows->items[i].card, id))
			return &rows->items[i];
	return NULL;
}

static void count_offered(struct card_rows *rows, const struct resource *r)
{
	const struct offer *offer = resource_offer(r);
	struct fleet_devices devices;
	struct card_row *near = NULL;
	struct hm_err e;

	if (offer->class->list(offer, &devices, &e) < 0)
		return;
	for (size_t i = 0; i < devices.count; i++) {
		near = row_of(rows, devices.items[i].id, near);
		if (near != NULL)
			near->offered++;
	}
	fleet_devices_fini(&devices);
}

static void count_claim(struct card_rows *rows, const struct claim *c)
{
	struct card_row *near = NULL;

	for (size_t i = 0; i < c->device_count; i++) {
		near = row_of(rows, c->devices[i], near);
		if (near != NULL)
			near->slots[c->state]++;
	}
	for (size_t i = 0; i < c->card_count; i++) {
		struct card_row *row = row_of(rows, c->cards[i].uuid, near);

		if (row == NULL)
			continue;
		row->promised_bytes += c->cards[i].memory_bytes;
		row->promised_cores += c->cards[i].cores;
	}
}

static void collect(const struct metrics_sources *s, struct card_rows *rows)
{
	const struct fleet *fleet = cards_fleet(s->cards);
	const struct inventory *inv = fleet != NULL ? fleet_inventory(fleet) : NULL;

	rows->count = inv != NULL ? HM_MIN(inv->count, (size_t)HM_MAX_CARDS) : 0;
	for (size_t i = 0; i < rows->count; i++)
		fill_row(&rows->items[i], fleet, &inv->cards[i]);
	for (size_t i = 0; i < s->resource_count; i++)
		count_offered(rows, s->resources[i]);
	for (size_t i = 0; i < claims_count(s->claims); i++)
		count_claim(rows, claims_at(s->claims, i));
}

static void add_slots(struct str *out, const struct prom_family *f, const struct card_row *row)
{
	uint64_t taken = 0;

	for (unsigned state = 0; state < STATES; state++) {
		taken += row->slots[state];
		prom_add(out, f,
			 PROM_LABELS({ "device_uuid", row->card->uuid },
				     { "state", claim_state_name((enum claim_state)state) }),
			 row->slots[state]);
	}
	prom_add(out, f, PROM_LABELS({ "device_uuid", row->card->uuid }, { "state", "free" }),
		 row->offered > taken ? row->offered - taken : 0);
}

static void add_promises(const struct card_rows *rows, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_GPU_HEALTHY);

	for (size_t i = 0; i < rows->count; i++)
		prom_add(out, f,
			 PROM_LABELS({ "device_index", rows->items[i].index },
				     { "device_uuid", rows->items[i].card->uuid },
				     { "device_type", rows->items[i].type }),
			 rows->items[i].healthy);
	f = metrics_begin(out, METRIC_GPU_SLOTS);
	for (size_t i = 0; i < rows->count; i++)
		add_slots(out, f, &rows->items[i]);
	f = metrics_begin(out, METRIC_GPU_MEMORY);
	for (size_t i = 0; i < rows->count; i++)
		prom_add(out, f, PROM_LABELS({ "device_uuid", rows->items[i].card->uuid }),
			 rows->items[i].card->memory_bytes);
	f = metrics_begin(out, METRIC_GPU_PROMISED);
	for (size_t i = 0; i < rows->count; i++)
		prom_add(out, f, PROM_LABELS({ "device_uuid", rows->items[i].card->uuid }),
			 rows->items[i].promised_bytes);
	f = metrics_begin(out, METRIC_GPU_CORES);
	for (size_t i = 0; i < rows->count; i++)
		prom_add_micros(out, f, PROM_LABELS({ "device_uuid", rows->items[i].card->uuid }),
				rows->items[i].promised_cores * 10000);
}

/* HAMi's own, with its constant label. */
static void add_host(const struct metrics_sources *s, const struct card_rows *rows, struct str *out, enum metric m)
{
	const struct prom_family *f = metrics_begin(out, m);

	for (size_t i = 0; i < rows->count; i++) {
		const struct card_row *r = &rows->items[i];
		const struct card_figures *c = card_usage_find(s->usage, r->card->uuid);
		const struct prom_label labels[] = {
			{ "node", metrics_node(s) }, { "device_index", r->index }, { "device_uuid", r->card->uuid },
			{ "device_type", r->type },  { "zone", "vGPU" },           { NULL, NULL }
		};

		if (c == NULL || !(m == METRIC_HOST_USED ? c->has_memory : c->has_busy))
			continue;
		if (m == METRIC_HOST_USED)
			prom_add(out, f, labels, c->memory_used_bytes);
		else if (m == METRIC_HOST_BUSY)
			prom_add(out, f, labels, c->busy_percent);
		else
			prom_add(out, f, labels + 1, c->memory_busy_percent);
	}
}

static void add_health(const struct card_health *h, struct str *out)
{
	const struct prom_family *f = metrics_begin(out, METRIC_GPU_TURNS);

	for (size_t i = 0; h != NULL && i < card_health_count(h); i++) {
		const struct card_state *s = card_health_at(h, i);

		prom_add(out, f, PROM_LABELS({ "device_uuid", s->uuid }, { "to", "sick" }), s->turned_sick);
		prom_add(out, f, PROM_LABELS({ "device_uuid", s->uuid }, { "to", "well" }), s->recovered);
	}
	f = metrics_begin(out, METRIC_GPU_XIDS);
	for (size_t i = 0; h != NULL && i < card_health_count(h); i++) {
		const struct card_state *s = card_health_at(h, i);

		for (size_t k = 0; k < CARD_XIDS && s->xids[k].count > 0; k++) {
			char xid[16];

			hm_fmt(xid, sizeof xid, s->xids[k].xid != 0 ? "%u" : "other", s->xids[k].xid);
			prom_add(out, f, PROM_LABELS({ "device_uuid", s->uuid }, { "xid", xid }), s->xids[k].count);
		}
	}
}

void metrics_add_cards(const struct metrics_sources *s, struct str *out)
{
	struct card_rows rows;

	collect(s, &rows);
	add_promises(&rows, out);
	add_health(cards_health(s->cards), out);
	add_host(s, &rows, out, METRIC_HOST_USED);
	add_host(s, &rows, out, METRIC_HOST_BUSY);
	add_host(s, &rows, out, METRIC_HOST_MEMORY_BUSY);
}
