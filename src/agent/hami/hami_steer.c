#include "agent/hami/hami_steer.h"

#include <stdlib.h>
#include <string.h>

#include "agent/claims/checkpoint_cache.h"
#include "agent/cluster/entry_map.h"
#include "contract/hami.h"
#include "hami/replica_id.h"

/* ---- who is asking */

static bool is_allocating(const struct pod_view *v)
{
	return !v->terminal && strcmp(v->phase, "Running") != 0 && v->annotations[POD_ALLOCATED] != NULL &&
	       strcmp(pod_view_text(v, POD_BIND_PHASE), HAMI_PHASE_ALLOCATING) == 0;
}

/* The pod's first container that may be the one. */
static const struct pod_container *candidate(const struct pod_view *v, const struct checkpoint *checkpoint,
					     int64_t size)
{
	for (size_t i = 0; i < v->container_count; i++) {
		const struct pod_container *c = &v->containers[i];

		if (c->gpus > 0 && c->gpus == size &&
		    (checkpoint == NULL || checkpoint_find(checkpoint, v->uid, c->name) == NULL))
			return c;
	}
	return NULL;
}

static bool read_entry(const struct pod_view *v, const char *container, struct pod_devices *devices, size_t *entry)
{
	struct hm_err e;

	if (devices_text_parse(v->annotations[POD_ALLOCATED], devices, &e) < 0)
		return false;
	if (entry_map_find(v, devices, container, entry, &e) == 0)
		return true;
	pod_devices_fini(devices);
	return false;
}

bool hami_steer_find(const struct pods *pods, const struct checkpoint *checkpoint, int64_t size,
		     struct pod_devices *devices, size_t *entry)
{
	const struct pod_view *v, *first = NULL;
	const struct pod_container *c;
	size_t at = 0;

	while ((v = pods_next(pods, &at)) != NULL)
		if (is_allocating(v) && candidate(v, checkpoint, size) != NULL &&
		    (first == NULL || v->order < first->order))
			first = v;
	if (first == NULL)
		return false;
	c = candidate(first, checkpoint, size);
	return read_entry(first, c->name, devices, entry);
}

/* ---- which ids */

struct pick {
	const struct dp_preferred_request *req;
	const char **out;
	size_t size, count;
	bool *taken; /* of req->available */
};

static bool is_held(const struct claims *claims, const char *id)
{
	for (size_t i = 0; i < claims_count(claims); i++)
		if (claims_at(claims, i)->state != CLAIM_ENDED && claim_has_device(claims_at(claims, i), id))
			return true;
	return false;
}

static bool is_of_card(const char *id, const char *uuid)
{
	char card[HM_UUID_BYTES];

	return replica_id_card(id, card, sizeof card) && strcmp(card, uuid) == 0;
}

/* The kubelet lists among what is available also what must be. */
static bool is_picked(const struct pick *p, const char *id)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->out[i], id) == 0)
			return true;
	return false;
}

static void take_must(struct pick *p)
{
	for (size_t i = 0; i < p->req->must_count && p->count < p->size; i++)
		if (!is_picked(p, p->req->must[i]))
			p->out[p->count++] = p->req->must[i];
	for (size_t i = 0; i < p->req->available_count; i++)
		p->taken[i] = p->count > 0 && is_picked(p, p->req->available[i]);
}

/* One id of the card (NULL: of any); false where there is none left. */
static bool take_one(struct pick *p, const char *uuid, const struct claims *free_of)
{
	for (size_t i = 0; i < p->req->available_count && p->count < p->size; i++) {
		const char *id = p->req->available[i];

		if (p->taken[i] || (uuid != NULL && !is_of_card(id, uuid)) || (free_of != NULL && is_held(free_of, id)))
			continue;
		p->taken[i] = true;
		p->out[p->count++] = id;
		return true;
	}
	return false;
}

/* What must be may cover some of the entry's cards already. */
static void take_entry(struct pick *p, const struct pod_devices *devices, size_t entry, const struct claims *claims)
{
	const struct devices_entry *e = &devices->entries[entry];
	size_t must = p->count;
	hm_auto_heap bool *covered = calloc(must + 1, sizeof *covered);

	for (size_t i = 0; covered != NULL && i < e->count; i++) {
		const char *uuid = devices->shares[e->first + i].uuid;
		bool done = false;

		for (size_t k = 0; k < must && !done; k++)
			done = !covered[k] && is_of_card(p->out[k], uuid) && (covered[k] = true);
		if (!done && !take_one(p, uuid, claims))
			(void)take_one(p, uuid, NULL);
	}
}

size_t hami_steer_pick(const struct pod_devices *devices, size_t entry, const struct claims *claims,
		       const struct dp_preferred_request *req, const char **out)
{
	hm_auto_heap bool *taken = calloc(req->available_count + 1, sizeof *taken);
	struct pick p = { req, out, req->size > 0 ? (size_t)req->size : 0, 0, taken };

	if (taken == NULL)
		return 0; /* no preference: the kubelet picks */
	p.size = HM_MIN(p.size, req->available_count + req->must_count);
	take_must(&p);
	if (devices != NULL)
		take_entry(&p, devices, entry, claims);
	while (p.count < p.size && (take_one(&p, NULL, claims) || take_one(&p, NULL, NULL)))
		;
	return p.count;
}
