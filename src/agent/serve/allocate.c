#include "agent/serve/allocate.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"

static int parse_ids(const struct slots *s, const char *const *ids, size_t count, struct slot_ref *out,
		     struct hm_err *e)
{
	if (count == 0)
		return hm_err_set(e, HM_EINVAL, "a container that asks for no device");
	for (size_t i = 0; i < count; i++)
		if (slot_id_parse(s, ids[i], &out[i], e) < 0)
			return -e->code;
	return 0;
}

static int fill_claim(const struct grant *grant, const char *resource, const char *const *ids, size_t count,
		      uint64_t number, struct claim *out, struct hm_err *e)
{
	*out = (struct claim) { .number = number, .state = CLAIM_ALLOCATED, .priority = 1, .card_count = grant->count };
	hm_fmt(out->resource, sizeof out->resource, "%s", resource);
	out->devices = calloc(count, sizeof *out->devices);
	if (out->devices == NULL)
		return hm_err_set(e, HM_ENOMEM, "allocation of %zu devices", count);
	out->device_count = count;
	for (size_t i = 0; i < count; i++)
		hm_fmt(out->devices[i], sizeof out->devices[i], "%s", ids[i]);
	for (size_t i = 0; i < grant->count; i++) {
		const struct grant_card *from = &grant->cards[i];
		struct claim_card *to = &out->cards[i];

		hm_fmt(to->uuid, sizeof to->uuid, "%s", from->on->card->uuid);
		to->memory_bytes = from->memory_bytes;
		to->cores = from->cores;
		to->slot = from->first_number;
	}
	return 0;
}

int allocate_claim(const struct slots *s, const char *resource, const char *const *ids, size_t count, uint64_t number,
		   struct claim *out, bool *broken, struct hm_err *e)
{
	hm_auto_heap struct slot_ref *refs = calloc(count + 1, sizeof *refs);
	struct grant grant;

	if (refs == NULL)
		return hm_err_set(e, HM_ENOMEM, "allocation of %zu devices", count);
	if (parse_ids(s, ids, count, refs, e) < 0 || slots_grant(s, refs, count, &grant, e) < 0)
		return -e->code;
	if (broken != NULL) {
		*broken = false;
		for (size_t i = 0; i < grant.count; i++)
			*broken |= grant.cards[i].broken_run;
	}
	return fill_claim(&grant, resource, ids, count, number, out, e);
}

/* ---- preferred */

/* A request's ids as refs, each beside its string; ids of no card here are left out. */
struct parsed {
	struct slot_ref *refs;
	const char **ids;
	size_t count;
};

static void parsed_free(struct parsed *p)
{
	free(p->refs);
	free(p->ids);
	p->refs = NULL;
	p->ids = NULL;
}

static int parse_known(const struct slots *s, const char *const *ids, size_t count, struct parsed *out,
		       struct hm_err *e)
{
	struct hm_err ignored;

	*out = (struct parsed) { calloc(count + 1, sizeof *out->refs), calloc(count + 1, sizeof *out->ids), 0 };
	if (out->refs == NULL || out->ids == NULL) {
		parsed_free(out);
		return hm_err_set(e, HM_ENOMEM, "preferred allocation");
	}
	for (size_t i = 0; i < count; i++) {
		if (slot_id_parse(s, ids[i], &out->refs[out->count], &ignored) == 0)
			out->ids[out->count++] = ids[i];
	}
	return 0;
}

/* Which slots the claims hold: one flag for each slot, cards one after the other. */
struct held {
	bool *flags;
	size_t per_card;
};

static bool is_held(struct slot_ref r, void *arg)
{
	const struct held *h = arg;

	return h->flags[r.card * h->per_card + r.number];
}

static int collect_held(const struct slots *s, const struct claims *claims, struct held *out, struct hm_err *e)
{
	struct hm_err ignored;
	struct slot_ref r;

	out->per_card = HM_MAX_SLOTS_PER_CARD;
	out->flags = calloc(slots_card_count(s) * out->per_card + 1, sizeof *out->flags);
	if (out->flags == NULL)
		return hm_err_set(e, HM_ENOMEM, "preferred allocation");
	for (size_t i = 0; i < claims_count(claims); i++) {
		const struct claim *c = claims_at(claims, i);

		for (size_t k = 0; c->state != CLAIM_ENDED && k < c->device_count; k++)
			if (slot_id_parse(s, c->devices[k], &r, &ignored) == 0)
				out->flags[r.card * out->per_card + r.number] = true;
	}
	return 0;
}

static const char *id_of(const struct parsed *p, struct slot_ref r)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->refs[i].card == r.card && p->refs[i].number == r.number)
			return p->ids[i];
	return NULL;
}

static int prefer_known(const struct slots *s, const struct claims *claims, const struct parsed *available,
			const struct parsed *must, size_t size, const char **out, struct hm_err *e)
{
	hm_auto_heap struct slot_ref *chosen = calloc(size + 1, sizeof *chosen);
	struct held held = { 0 };
	struct slots_request req = { available->refs, must->refs, available->count, must->count, size, is_held, &held };
	int r;

	if (chosen == NULL)
		return hm_err_set(e, HM_ENOMEM, "preferred allocation");
	if (collect_held(s, claims, &held, e) < 0)
		return -e->code;
	r = slots_prefer(s, &req, chosen, e);
	free(held.flags);
	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i++) {
		out[i] = id_of(available, chosen[i]);
		if (out[i] == NULL)
			out[i] = id_of(must, chosen[i]);
		if (out[i] == NULL)
			return hm_err_set(e, HM_EINTERNAL, "preferred allocation: a slot that was not offered");
	}
	return 0;
}

/* What must be there, then what is offered, as it comes. */
static size_t take_first(const struct dp_preferred_request *req, size_t size, const char **out)
{
	size_t n = 0;

	for (size_t i = 0; i < req->must_count && n < size; i++)
		out[n++] = req->must[i];
	for (size_t i = 0; i < req->available_count && n < size; i++) {
		bool taken = false;

		for (size_t k = 0; k < n; k++)
			taken |= strcmp(out[k], req->available[i]) == 0;
		if (!taken)
			out[n++] = req->available[i];
	}
	return n;
}

int allocate_prefer(const struct slots *s, const struct claims *claims, const struct dp_preferred_request *req,
		    const char **out, size_t *count, struct hm_err *e)
{
	size_t most = req->available_count + req->must_count;
	size_t size = req->size < 0 ? 0 : HM_MIN((size_t)req->size, most);
	struct parsed available = { 0 }, must = { 0 };
	int r = -HM_ENOMEM;

	*count = 0;
	if (parse_known(s, req->available, req->available_count, &available, e) == 0 &&
	    parse_known(s, req->must, req->must_count, &must, e) == 0)
		r = prefer_known(s, claims, &available, &must, size, out, e);
	parsed_free(&available);
	parsed_free(&must);
	if (r == -HM_ENOMEM)
		return r;
	*count = r == 0 ? size : take_first(req, size, out);
	return 0;
}
