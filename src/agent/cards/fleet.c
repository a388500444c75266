#include "agent/cards/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cards/card_health.h"
#include "core/fmt.h"

struct fleet {
	struct inventory *inventory;
	/* By place in the inventory: the last scan saw it; and it is not sick either. */
	bool seen[HM_MAX_CARDS], healthy[HM_MAX_CARDS];
};

/* Where each card of the union comes from. */
struct source {
	const struct inventory *in;
	size_t at;
};

static size_t choose(const struct fleet *before, const struct inventory *scanned, struct source out[HM_MAX_CARDS])
{
	size_t n = 0;

	for (size_t i = 0; scanned != NULL && i < scanned->count && n < HM_MAX_CARDS; i++)
		out[n++] = (struct source) { scanned, i };
	for (size_t i = 0; before != NULL && i < before->inventory->count && n < HM_MAX_CARDS; i++)
		if (scanned == NULL || inventory_find(scanned, before->inventory->cards[i].uuid) == NULL)
			out[n++] = (struct source) { before->inventory, i };
	return n;
}

static int fill(struct inventory *inv, const struct source *from, size_t n, struct hm_err *e)
{
	inv->cards = calloc(n > 0 ? n : 1, sizeof *inv->cards);
	inv->links = calloc(n > 0 ? n * n : 1, sizeof *inv->links);
	if (inv->cards == NULL || inv->links == NULL)
		return hm_err_set(e, HM_ENOMEM, "cards of the node");
	inv->count = n;
	for (size_t i = 0; i < n; i++) {
		inv->cards[i] = from[i].in->cards[from[i].at];
		for (size_t k = 0; k < n; k++)
			if (from[k].in == from[i].in)
				inv->links[i * n + k] = inventory_link(from[i].in, from[i].at, from[k].at);
	}
	return 0;
}

static int make(const struct source *from, size_t n, const struct inventory *told, struct fleet **out, struct hm_err *e)
{
	hm_auto(fleet) *f = calloc(1, sizeof *f);

	if (f == NULL || (f->inventory = inventory_new()) == NULL)
		return hm_err_set(e, HM_ENOMEM, "cards of the node");
	if (fill(f->inventory, from, n, e) < 0)
		return -e->code;
	if (told != NULL) {
		memcpy(f->inventory->driver_version, told->driver_version, sizeof told->driver_version);
		f->inventory->cuda_version = told->cuda_version;
	}
	*out = HM_STEAL(f);
	return 0;
}

static void judge(struct fleet *f, const struct card_health *health)
{
	for (size_t i = 0; i < f->inventory->count; i++)
		f->healthy[i] =
			f->seen[i] && (health == NULL || !card_health_is_sick(health, f->inventory->cards[i].uuid));
}

int fleet_new(const struct fleet *before, const struct inventory *scanned, struct fleet **out, struct hm_err *e)
{
	struct source from[HM_MAX_CARDS] = { 0 };
	size_t n = choose(before, scanned, from);

	if (make(from, n, scanned != NULL ? scanned : before != NULL ? before->inventory : NULL, out, e) < 0)
		return -e->code;
	for (size_t i = 0; i < n; i++)
		(*out)->seen[i] = from[i].in == scanned;
	judge(*out, NULL);
	return 0;
}

int fleet_judge(const struct fleet *f, const struct card_health *health, struct fleet **out, struct hm_err *e)
{
	struct source from[HM_MAX_CARDS];

	for (size_t i = 0; i < f->inventory->count; i++)
		from[i] = (struct source) { f->inventory, i };
	if (make(from, f->inventory->count, f->inventory, out, e) < 0)
		return -e->code;
	memcpy((*out)->seen, f->seen, sizeof f->seen);
	judge(*out, health);
	return 0;
}

void fleet_free(struct fleet *f)
{
	if (f == NULL)
		return;
	inventory_free(f->inventory);
	free(f);
}

const struct inventory *fleet_inventory(const struct fleet *f)
{
	return f->inventory;
}

bool fleet_is_healthy(const struct fleet *f, const struct card *card)
{
	return f->healthy[card - f->inventory->cards];
}

bool fleet_equal(const struct fleet *a, const struct fleet *b)
{
	return inventory_equal(a->inventory, b->inventory) && memcmp(a->healthy, b->healthy, sizeof a->healthy) == 0;
}

int fleet_devices_init(size_t room, struct fleet_devices *out, struct hm_err *e)
{
	*out = (struct fleet_devices) { calloc(room + 1, sizeof *out->items), 0, calloc(room + 1, sizeof *out->ids) };
	if (out->items != NULL && out->ids != NULL)
		return 0;
	fleet_devices_fini(out);
	return hm_err_set(e, HM_ENOMEM, "list of devices");
}

void fleet_devices_fini(struct fleet_devices *d)
{
	free(d->items);
	free(d->ids);
	*d = (struct fleet_devices) { 0 };
}
