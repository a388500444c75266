#include "agent/serve/offer_slices.h"

#include <stdlib.h>
#include <string.h>

#include "agent/claims/node_file.h"
#include "agent/serve/allocate.h"
#include "base/log.h"
#include "contract/names.h"
#include "core/fmt.h"
#include "io/loop.h"

struct offer_slices {
	struct offer offer;
	const struct agent_options *options;
	const struct agent_paths *paths;
	const struct claims *claims;
	const struct fleet *fleet;
	struct slots *slots; /* NULL: no cards yet */
	uint64_t broken_runs;
};

static struct offer_slices *slices_of(struct offer *o)
{
	return HM_CONTAINER(o, struct offer_slices, offer);
}

static int need_cards(const struct offer_slices *s, struct hm_err *e)
{
	return s->slots != NULL ? 0 : hm_err_set(e, HM_EAGAIN, "the cards of this node are not known yet");
}

/* ---- the cards */

static void log_cards(const struct offer_slices *s)
{
	for (size_t i = 0; i < slots_card_count(s->slots); i++) {
		const struct slot_card *c = slots_card(s->slots, i);

		log_info(fleet_is_healthy(s->fleet, c->card) ? "card" : "card is lost", KV("uuid", c->card->uuid),
			 KV("model", c->card->model), KV_U64("slots", c->slots),
			 KV_U64("slot_mib", c->slot_memory_bytes >> 20), KV_U64("slot_cores", c->slot_cores),
			 KV_U64("unused_mib", c->unused_memory_bytes >> 20), KV_I64("numa", c->card->numa_node));
		if (c->unbacked_memory_bytes > 0 && !s->options->oversubscribe)
			log_warn("the driver keeps memory that the slots promise: the last of them cannot be had in "
				 "full",
				 KV("uuid", c->card->uuid), KV_U64("mib", c->unbacked_memory_bytes >> 20));
	}
	for (size_t i = 0; i < fleet_inventory(s->fleet)->count; i++)
		if (fleet_inventory(s->fleet)->cards[i].mig_enabled)
			log_warn("a card in MIG mode is not offered",
				 KV("uuid", fleet_inventory(s->fleet)->cards[i].uuid));
}

static int take(struct offer *o, const struct fleet *f, struct hm_err *e)
{
	struct offer_slices *s = slices_of(o);
	const struct slots_config config = agent_slots_config(s->options);
	struct slots *fresh;

	if (slots_new(fleet_inventory(f), &config, &fresh, e) < 0)
		return -e->code;
	slots_free(s->slots);
	s->slots = fresh;
	s->fleet = f;
	log_cards(s);
	if (node_file_write(s->paths, s->options, s->slots, e) < 0)
		log_warn("the node file is not written; hami-smi shows old cards", KV_ERR(e));
	return 0;
}

static int list(const struct offer *o, struct fleet_devices *out, struct hm_err *e)
{
	const struct offer_slices *s = HM_CONTAINER(o, const struct offer_slices, offer);

	if (need_cards(s, e) < 0 || fleet_devices_init(slots_total(s->slots), out, e) < 0)
		return -e->code;
	for (unsigned c = 0; c < slots_card_count(s->slots); c++) {
		const struct slot_card *card = slots_card(s->slots, c);

		for (unsigned number = 0; number < card->slots; number++) {
			char *id = out->ids[out->count];

			slot_id_format(s->slots, (struct slot_ref) { c, number }, id);
			out->items[out->count++] =
				(struct dp_device) { id, fleet_is_healthy(s->fleet, card->card),
						     s->options->enable_topology ? card->card->numa_node : -1 };
		}
	}
	return 0;
}

/* ---- what ids amount to */

static int prefer(struct offer *o, const struct dp_preferred_request *req, const char **out, size_t *count,
		  struct hm_err *e)
{
	struct offer_slices *s = slices_of(o);

	*count = 0;
	return need_cards(s, e) < 0 ? -e->code : allocate_prefer(s->slots, s->claims, req, out, count, e);
}

static int claim(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
		 struct hm_err *e)
{
	struct offer_slices *s = slices_of(o);
	bool broken;

	if (need_cards(s, e) < 0 || allocate_claim(s->slots, o->resource, ids, count, number, out, &broken, e) < 0)
		return -e->code;
	if (broken && strcmp(s->options->slicing, "static") == 0) {
		s->broken_runs++;
		log_info("granted slots that are no neighbours: the kubelet chose them", KV_U64("number", number),
			 KV_U64("so_far", s->broken_runs));
	}
	return 0;
}

/* The claim as it was, sizes included: a change of the configuration does not resize a pod that runs. Else made from
 * the ids. */
static int start(struct offer *o, const struct prestart_target *target, const char *const *ids, size_t count,
		 const struct claim *old, struct claim *out, struct hm_err *e)
{
	struct offer_slices *s = slices_of(o);

	if (old != NULL && claim_has_set(old, ids, count))
		return claim_copy(old, out, e);
	if (need_cards(s, e) < 0 || allocate_claim(s->slots, o->resource, ids, count, target->number, out, NULL, e) < 0)
		return -e->code;
	out->created_ms = clock_wall_ms();
	hm_fmt(out->cdi, sizeof out->cdi, HM_CDI_KIND "=" HM_CDI_DEVICE_PREFIX "%llu",
	       (unsigned long long)target->number);
	return 0;
}

static void free_slices(struct offer *o)
{
	slots_free(slices_of(o)->slots);
	free(slices_of(o));
}

static const struct offer_class slices_class = {
	.name = "slices",
	.ids_are_held = true,
	.take = take,
	.list = list,
	.prefer = prefer,
	.claim = claim,
	.start = start,
	.free = free_slices,
};

int offer_slices_new(const struct agent_options *options, const struct agent_paths *paths, const struct claims *claims,
		     struct offer **out, struct hm_err *e)
{
	struct offer_slices *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "slices");
	*s = (struct offer_slices) {
		.offer = { &slices_class, options->resource_name }, .options = options, .paths = paths, .claims = claims
	};
	*out = &s->offer;
	return 0;
}

uint64_t offer_slices_broken_runs(const struct offer *o)
{
	return HM_CONTAINER(o, const struct offer_slices, offer)->broken_runs;
}
