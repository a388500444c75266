#include "agent/hami/offer_hami.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cards/hami_cards.h"
#include "agent/cards/mig_cards.h"
#include "core/fmt.h"
#include "hami/replica_id.h"

struct offer_hami {
	struct offer offer;
	struct offer_hami_config config;
	const struct fleet *fleet; /* NULL: no cards yet */
};

static struct offer_hami *hami_of(struct offer *o)
{
	return HM_CONTAINER(o, struct offer_hami, offer);
}

static int need_cards(const struct offer_hami *h, struct hm_err *e)
{
	return h->fleet != NULL ? 0 : hm_err_set(e, HM_EAGAIN, "the cards of this node are not known yet");
}

/* ---- the cards */

static int take(struct offer *o, const struct fleet *f, struct hm_err *e)
{
	(void)e;
	hami_of(o)->fleet = f;
	return 0;
}

/* By the annotation's count. */
static uint64_t replicas_of(const struct offer_hami *h, const struct card *card)
{
	const struct hami_options *o = &h->config.options->hami;

	return mig_cards_wanted(o) ? mig_cards_count(o, card) : o->device_split_count;
}

static int list(const struct offer *o, struct fleet_devices *out, struct hm_err *e)
{
	const struct offer_hami *h = HM_CONTAINER(o, const struct offer_hami, offer);
	const struct agent_options *options = h->config.options;
	struct hami_card cards[HM_MAX_CARDS];
	uint64_t room = 0;
	size_t n;

	if (need_cards(h, e) < 0)
		return -e->code;
	n = hami_cards_of(h->fleet, &options->hami, cards);
	for (size_t c = 0; c < n; c++)
		room += replicas_of(h, cards[c].card);
	if (fleet_devices_init(room, out, e) < 0)
		return -e->code;
	for (size_t c = 0; c < n; c++) {
		uint64_t replicas = replicas_of(h, cards[c].card);
		int numa = options->enable_topology ? cards[c].card->numa_node : -1;

		for (unsigned i = 0; i < replicas; i++) {
			char *id = out->ids[out->count];

			if (replica_id_write(cards[c].card->uuid, i, id, sizeof *out->ids))
				out->items[out->count++] = (struct dp_device) { id, cards[c].healthy, numa };
		}
	}
	return 0;
}

/* ---- what ids amount to */

static int prefer(struct offer *o, const struct dp_preferred_request *req, const char **out, size_t *count,
		  struct hm_err *e)
{
	return hami_late_prefer(hami_of(o)->config.late, req, out, count, e);
}

/* Late binding: who it is for, and so which cards, is known at PreStart. */
static int claim(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
		 struct hm_err *e)
{
	if (count == 0)
		return hm_err_set(e, HM_EINVAL, "a container that asks for no device");
	*out = (struct claim) { .number = number, .state = CLAIM_ALLOCATED, .priority = 1 };
	hm_fmt(out->resource, sizeof out->resource, "%s", o->resource);
	out->devices = calloc(count, sizeof *out->devices);
	if (out->devices == NULL)
		return hm_err_set(e, HM_ENOMEM, "allocation of %zu devices", count);
	out->device_count = count;
	for (size_t i = 0; i < count; i++)
		hm_fmt(out->devices[i], sizeof out->devices[i], "%s", ids[i]);
	return 0;
}

static void call_classic(struct offer *o)
{
	hami_classic_call(hami_of(o)->config.classic);
}

static int claim_classic(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
			 struct hm_err *e)
{
	struct offer_hami *h = hami_of(o);

	if (count == 0)
		return hm_err_set(e, HM_EINVAL, "a container that asks for no device");
	if (need_cards(h, e) < 0)
		return -e->code;
	return hami_classic_claim(h->config.classic, ids, count, number, fleet_inventory(h->fleet), out, e);
}

static void answered_classic(struct offer *o, const struct claim *c, bool ok)
{
	hami_classic_answered(hami_of(o)->config.classic, c, ok);
}

static int start(struct offer *o, const struct prestart_target *target, const char *const *ids, size_t count,
		 const struct claim *old, struct claim *out, struct hm_err *e)
{
	struct offer_hami *h = hami_of(o);

	if (need_cards(h, e) < 0)
		return -e->code;
	if (target->classic)
		return hami_classic_start(h->config.classic, target, ids, count, old, fleet_inventory(h->fleet), out,
					  e);
	return hami_late_start(h->config.late, target, ids, count, old, fleet_inventory(h->fleet), out, e);
}

static void started(struct offer *o, const struct claim *c)
{
	hami_late_started(hami_of(o)->config.late, c);
}

static void free_hami(struct offer *o)
{
	free(hami_of(o));
}

static const struct offer_class hami_class = {
	.name = "hami",
	.others_start = true,
	.take = take,
	.list = list,
	.prefer = prefer,
	.claim = claim,
	.start = start,
	.started = started,
	.free = free_hami,
};

static const struct offer_class classic_class = {
	.name = "hami",
	.others_start = true,
	.allocate_wait_ms = HAMI_CLASSIC_WAIT_MS,
	.take = take,
	.list = list,
	.prefer = prefer,
	.call = call_classic,
	.claim = claim_classic,
	.answered = answered_classic,
	.start = start,
	.started = started,
	.free = free_hami,
};

int offer_hami_new(const struct offer_hami_config *config, struct offer **out, struct hm_err *e)
{
	const struct offer_class *class = agent_binds_late(config->options) ? &hami_class : &classic_class;
	struct offer_hami *h = calloc(1, sizeof *h);

	if (h == NULL)
		return hm_err_set(e, HM_ENOMEM, "HAMi's resource");
	*h = (struct offer_hami) { .offer = { class, config->options->resource_name }, .config = *config };
	*out = &h->offer;
	return 0;
}
