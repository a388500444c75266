#include "agent/serve/offer_mig.h"

#include <stdlib.h>
#include <string.h>

#include "contract/names.h"
#include "core/fmt.h"
#include "io/loop.h"

struct offer_mig {
	struct offer offer;
	struct offer_mig_config config;
	char resource[256], profile[MIG_NAME_BYTES];
	const struct fleet *fleet; /* NULL: no cards yet */
};

static struct offer_mig *mig_of(struct offer *o)
{
	return HM_CONTAINER(o, struct offer_mig, offer);
}

static int need_cards(const struct offer_mig *m, struct hm_err *e)
{
	return m->fleet != NULL ? 0 : hm_err_set(e, HM_EAGAIN, "the cards of this node are not known yet");
}

bool offer_mig_counts(const struct mig_device *d)
{
	return d->whole && d->profile[0] != '\0';
}

static bool is_ours(const struct offer_mig *m, const struct mig_device *d)
{
	return offer_mig_counts(d) && (m->profile[0] == '\0' || strcmp(m->profile, d->profile) == 0);
}

/* ---- the cards */

static int check_card(const struct card *c, const char **profile, struct hm_err *e)
{
	if (!c->mig_enabled)
		return hm_err_set(e, HM_EINVAL, "--mig-strategy=single: GPU %u (%s) is not in MIG mode, others are",
				  c->index, c->uuid);
	if (c->mig.device_count == 0)
		return hm_err_set(e, HM_EINVAL, "--mig-strategy=single: GPU %u (%s) is in MIG mode and has no instance",
				  c->index, c->uuid);
	for (size_t i = 0; i < c->mig.device_count; i++) {
		const struct mig_device *d = &c->mig.devices[i];

		if (!offer_mig_counts(d))
			return hm_err_set(
				e, HM_EINVAL,
				"--mig-strategy=single: MIG device %s of GPU %u has not all of its instance's "
				"compute slices",
				d->uuid, c->index);
		if (*profile == NULL)
			*profile = d->profile;
		if (strcmp(*profile, d->profile) != 0)
			return hm_err_set(
				e, HM_EINVAL,
				"--mig-strategy=single: MIG devices of profile %s and of %s; all must be of one",
				*profile, d->profile);
	}
	return 0;
}

int offer_mig_uniform(const struct inventory *inv, struct hm_err *e)
{
	const char *profile = NULL;
	bool any = false;

	for (size_t i = 0; i < inv->count; i++)
		any |= inv->cards[i].mig_enabled;
	for (size_t i = 0; any && i < inv->count; i++)
		if (check_card(&inv->cards[i], &profile, e) < 0)
			return -e->code;
	return any;
}

static int take(struct offer *o, const struct fleet *f, struct hm_err *e)
{
	struct offer_mig *m = mig_of(o);

	if (m->profile[0] == '\0' && offer_mig_uniform(fleet_inventory(f), e) < 0)
		return -e->code;
	m->fleet = f;
	return 0;
}

static int list(const struct offer *o, struct fleet_devices *out, struct hm_err *e)
{
	const struct offer_mig *m = HM_CONTAINER(o, const struct offer_mig, offer);
	const struct inventory *inv;

	if (need_cards(m, e) < 0)
		return -e->code;
	inv = fleet_inventory(m->fleet);
	if (fleet_devices_init(inv->count * MIG_MAX_DEVICES, out, e) < 0)
		return -e->code;
	for (size_t c = 0; c < inv->count; c++) {
		const struct card *card = &inv->cards[c];

		for (size_t i = 0; i < card->mig.device_count; i++) {
			char *id = out->ids[out->count];

			if (!is_ours(m, &card->mig.devices[i]))
				continue;
			hm_fmt(id, sizeof *out->ids, "%s", card->mig.devices[i].uuid);
			out->items[out->count++] =
				(struct dp_device) { id, fleet_is_healthy(m->fleet, card),
						     m->config.options->enable_topology ? card->numa_node : -1 };
		}
	}
	return 0;
}

/* ---- what ids amount to */

static const struct mig_device *find(const struct offer_mig *m, const char *id, const struct card **card)
{
	const struct inventory *inv = fleet_inventory(m->fleet);

	for (size_t i = 0; i < inv->count; i++) {
		const struct mig_device *d = mig_find_device(&inv->cards[i].mig, id);

		*card = &inv->cards[i];
		if (d != NULL && is_ours(m, d))
			return d;
	}
	return NULL;
}

static void fill_card(const struct card *card, const struct mig_device *d, struct claim_card *out)
{
	const struct mig_profile *p = mig_find_profile(&card->mig, d->profile);

	*out = (struct claim_card) { .memory_bytes = d->memory_mib << 20,
				     .cores = p != NULL ? mig_cores(p, &card->mig) : 100,
				     .gi = d->gi,
				     .ci = d->ci };
	hm_fmt(out->uuid, sizeof out->uuid, "%s", card->uuid);
	hm_fmt(out->mig, sizeof out->mig, "%s", d->uuid);
}

static int fill(const struct offer_mig *m, const char *const *ids, size_t count, struct claim *out, struct hm_err *e)
{
	if (count > HM_MAX_CARDS)
		return hm_err_set(e, HM_ELIMIT, "a container may have at most %d MIG devices", HM_MAX_CARDS);
	for (size_t i = 0; i < count; i++) {
		const struct card *card;
		const struct mig_device *d = find(m, ids[i], &card);

		if (d == NULL)
			return hm_err_set(e, HM_ENOTFOUND, "no MIG device %s is offered here", ids[i]);
		fill_card(card, d, &out->cards[out->card_count++]);
		hm_fmt(out->devices[out->device_count++], sizeof *out->devices, "%s", ids[i]);
	}
	return 0;
}

static int claim(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
		 struct hm_err *e)
{
	struct offer_mig *m = mig_of(o);

	if (count == 0)
		return hm_err_set(e, HM_EINVAL, "a container that asks for no device");
	if (need_cards(m, e) < 0)
		return -e->code;
	*out = (struct claim) { .number = number, .state = CLAIM_ALLOCATED, .priority = 1 };
	hm_fmt(out->resource, sizeof out->resource, "%s", o->resource);
	out->devices = calloc(count, sizeof *out->devices);
	if (out->devices == NULL)
		return hm_err_set(e, HM_ENOMEM, "allocation of %zu devices", count);
	if (fill(m, ids, count, out, e) == 0)
		return 0;
	claim_fini(out);
	return -e->code;
}

static bool is_held(const struct offer_mig *m, const char *id)
{
	for (size_t i = 0; i < claims_count(m->config.claims); i++) {
		const struct claim *c = claims_at(m->config.claims, i);

		if (c->state != CLAIM_ENDED && claim_has_device(c, id))
			return true;
	}
	return false;
}

static bool has(const char *const *ids, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(ids[i], id) == 0)
			return true;
	return false;
}

/* Must first, then what nobody holds, as it comes, then the rest. */
static int prefer(struct offer *o, const struct dp_preferred_request *req, const char **out, size_t *count,
		  struct hm_err *e)
{
	const struct offer_mig *m = mig_of(o);
	size_t size = req->size < 0 ? 0 : (size_t)req->size, n = 0;

	(void)e;
	for (size_t i = 0; i < req->must_count && n < size; i++)
		out[n++] = req->must[i];
	for (int held = 0; held < 2; held++)
		for (size_t i = 0; i < req->available_count && n < size; i++)
			if (!has(out, n, req->available[i]) && is_held(m, req->available[i]) == (held == 1))
				out[n++] = req->available[i];
	*count = n;
	return 0;
}

/* An instance that was made anew bears the same UUID and, it may be, other numbers: so from what is there now. */
static int start(struct offer *o, const struct prestart_target *target, const char *const *ids, size_t count,
		 const struct claim *old, struct claim *out, struct hm_err *e)
{
	int r = claim(o, ids, count, target->number, out, e);

	if (r == -HM_ENOTFOUND) {
		hm_err_wrap(e, "it waits for the instance");
		e->code = HM_EAGAIN;
		return -HM_EAGAIN;
	}
	if (r < 0)
		return r;
	if (old == NULL) {
		out->created_ms = clock_wall_ms();
		hm_fmt(out->cdi, sizeof out->cdi, HM_CDI_KIND "=" HM_CDI_DEVICE_PREFIX "%llu",
		       (unsigned long long)target->number);
		return 0;
	}
	out->created_ms = old->created_ms;
	memcpy(out->cdi, old->cdi, sizeof out->cdi);
	memcpy(out->pod_uid, old->pod_uid, sizeof out->pod_uid);
	memcpy(out->pod_namespace, old->pod_namespace, sizeof out->pod_namespace);
	memcpy(out->pod_name, old->pod_name, sizeof out->pod_name);
	memcpy(out->container, old->container, sizeof out->container);
	return 0;
}

static void started(struct offer *o, const struct claim *c)
{
	const struct offer_mig *m = mig_of(o);

	if (m->config.started != NULL)
		m->config.started(m->config.arg, c);
}

static void free_mig(struct offer *o)
{
	free(mig_of(o));
}

static const struct offer_class mig_class = {
	.name = "mig",
	.ids_are_held = true,
	.take = take,
	.list = list,
	.prefer = prefer,
	.claim = claim,
	.start = start,
	.started = started,
	.free = free_mig,
};

int offer_mig_new(const struct offer_mig_config *config, struct offer **out, struct hm_err *e)
{
	struct offer_mig *m = calloc(1, sizeof *m);

	if (m == NULL)
		return hm_err_set(e, HM_ENOMEM, "MIG devices");
	m->config = *config;
	hm_fmt(m->resource, sizeof m->resource, "%s", config->resource);
	hm_fmt(m->profile, sizeof m->profile, "%s", config->profile);
	m->offer = (struct offer) { &mig_class, m->resource };
	*out = &m->offer;
	return 0;
}
