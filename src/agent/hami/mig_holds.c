#include "agent/hami/mig_holds.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "core/fmt.h"
#include "hami/devices_text.h"
#include "hami/mig_text.h"

/* A pod whose reservation cannot be read. */
struct blind_pod {
	char uid[POD_UID_BYTES];
	char (*cards)[HM_UUID_BYTES]; /* owned; what its device text names */
	size_t count, cap;
	bool all; /* not even that can be read */
};

struct mig_holds {
	struct mig_hold *items;
	size_t count, cap;
	struct blind_pod *blind;
	size_t blind_count, blind_cap;
};

struct mig_holds *mig_holds_new(void)
{
	return calloc(1, sizeof(struct mig_holds));
}

void mig_holds_free(struct mig_holds *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->blind_count; i++)
		free(h->blind[i].cards);
	free(h->blind);
	free(h->items);
	free(h);
}

size_t mig_holds_count(const struct mig_holds *h)
{
	return h->count;
}

struct mig_hold *mig_holds_at(struct mig_holds *h, size_t i)
{
	return &h->items[i];
}

void mig_holds_remove(struct mig_holds *h, size_t i)
{
	h->items[i] = h->items[--h->count];
}

struct mig_hold *mig_holds_find(struct mig_holds *h, const char *pod_uid, uint32_t container, uint32_t device)
{
	struct mig_hold *found = NULL;

	for (size_t i = 0; i < h->count; i++)
		if (h->items[i].container == container && h->items[i].device == device &&
		    strcmp(h->items[i].pod_uid, pod_uid) == 0 && (found == NULL || found->over))
			found = &h->items[i];
	return found;
}

/* ---- texts that cannot be read */

static void forget_blind(struct mig_holds *h, const char *uid)
{
	for (size_t i = 0; i < h->blind_count; i++) {
		if (strcmp(h->blind[i].uid, uid) != 0)
			continue;
		free(h->blind[i].cards);
		h->blind[i] = h->blind[--h->blind_count];
		return;
	}
}

static int name_cards(const struct pod_view *v, struct blind_pod *b, struct hm_err *e)
{
	hm_auto_pod_devices devices = { 0 };
	struct hm_err why;

	b->all = v->annotations[POD_ALLOCATED] == NULL ||
		 devices_text_parse(v->annotations[POD_ALLOCATED], &devices, &why) < 0;
	for (size_t i = 0; !b->all && i < devices.share_count; i++) {
		if (!array_reserve(&b->cards, &b->cap, b->count + 1, sizeof *b->cards))
			return hm_err_set(e, HM_ENOMEM, "pod's cards");
		hm_fmt(b->cards[b->count++], sizeof *b->cards, "%s", devices.shares[i].uuid);
	}
	return 0;
}

static int be_blind(struct mig_holds *h, const struct pod_view *v, struct hm_err *e)
{
	struct blind_pod b = { 0 };

	forget_blind(h, v->uid);
	hm_fmt(b.uid, sizeof b.uid, "%s", v->uid);
	if (name_cards(v, &b, e) < 0 || !HM_PUSH(h->blind, h->blind_count, h->blind_cap, b)) {
		free(b.cards);
		return hm_err_set(e, HM_ENOMEM, "pod's cards");
	}
	return 0;
}

bool mig_holds_blind(const struct mig_holds *h, const char *gpu_uuid)
{
	for (size_t i = 0; i < h->blind_count; i++) {
		if (h->blind[i].all)
			return true;
		for (size_t k = 0; k < h->blind[i].count; k++)
			if (strcmp(h->blind[i].cards[k], gpu_uuid) == 0)
				return true;
	}
	return false;
}

/* ---- pods */

static bool has_ended(const struct pod_view *v)
{
	bool ended = v->trouble == NULL && v->container_count > 0;

	for (size_t i = 0; i < v->container_count; i++)
		ended &= v->containers[i].gpus == 0 || v->containers[i].state == POD_TERMINATED;
	return v->terminal || ended;
}

static bool is_told(const struct mig_hold *hold, const struct mig_record *r)
{
	return r->made && hold->ready && strcmp(r->mig_uuid, hold->made.uuid) == 0 &&
	       r->gpu_instance == hold->made.gi && r->compute_instance == hold->made.ci;
}

static bool is_same(const struct mig_hold *hold, const struct mig_record *r)
{
	return !hold->over && strcmp(hold->gpu_uuid, r->gpu_uuid) == 0 && strcmp(hold->profile, r->profile) == 0 &&
	       hold->at.start == r->start && hold->at.size == r->size;
}

static struct mig_hold hold_of(const struct pod_view *v, const struct mig_record *r)
{
	struct mig_hold hold = { .container = r->container, .device = r->device, .at = { r->start, r->size } };

	hm_fmt(hold.pod_uid, sizeof hold.pod_uid, "%s", v->uid);
	hm_fmt(hold.name_space, sizeof hold.name_space, "%s", v->name_space);
	hm_fmt(hold.pod, sizeof hold.pod, "%s", v->name);
	hm_fmt(hold.gpu_uuid, sizeof hold.gpu_uuid, "%s", r->gpu_uuid);
	hm_fmt(hold.profile, sizeof hold.profile, "%s", r->profile);
	if (r->made) {
		hm_fmt(hold.made.uuid, sizeof hold.made.uuid, "%s", r->mig_uuid);
		hold.made.gi = r->gpu_instance;
		hold.made.ci = r->compute_instance;
	}
	return hold;
}

/* A record that the scheduler changed under us is another hold; the former ends. */
static int take_record(struct mig_holds *h, const struct pod_view *v, const struct mig_record *r, struct hm_err *e)
{
	struct mig_hold *hold = NULL;

	for (size_t i = 0; i < h->count && hold == NULL; i++)
		if (strcmp(h->items[i].pod_uid, v->uid) == 0 && h->items[i].container == r->container &&
		    h->items[i].device == r->device && is_same(&h->items[i], r))
			hold = &h->items[i];
	if (hold != NULL) {
		hold->told = is_told(hold, r);
		return 0;
	}
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->items[i].pod_uid, v->uid) == 0 && h->items[i].container == r->container &&
		    h->items[i].device == r->device)
			h->items[i].over = true;
	return HM_PUSH(h->items, h->count, h->cap, hold_of(v, r)) ? 0 : hm_err_set(e, HM_ENOMEM, "MIG reservations");
}

int mig_holds_take(struct mig_holds *h, const struct pod_view *v, struct hm_err *e)
{
	hm_auto_mig_allocations records = { 0 };
	struct hm_err why;
	int r;

	if (v->terminal) {
		mig_holds_gone(h, v);
		return 0;
	}
	r = v->trouble != NULL ? hm_err_set(&why, HM_EINVAL, "%s", v->trouble)
			       : mig_text_parse(v->annotations[POD_MIG_ALLOCATIONS], &records, &why);
	if (r == -HM_ENOMEM)
		return hm_err_set(e, HM_ENOMEM, "%s", why.msg);
	if (r < 0) {
		log_warn("a pod's MIG reservation cannot be read; its cards stay as they are", KV("pod", v->name),
			 KV("namespace", v->name_space), KV_ERR(&why));
		return be_blind(h, v, e);
	}
	forget_blind(h, v->uid);
	for (size_t i = 0; i < records.count; i++)
		if (take_record(h, v, &records.records[i], e) < 0)
			return -e->code;
	return 0;
}

void mig_holds_gone(struct mig_holds *h, const struct pod_view *v)
{
	for (size_t i = 0; i < h->count; i++) {
		if (strcmp(h->items[i].pod_uid, v->uid) != 0)
			continue;
		h->items[i].over = true;
		h->items[i].ended |= has_ended(v);
	}
	forget_blind(h, v->uid);
}

/* ---- what stands on the cards */

void mig_holds_check(struct mig_holds *h, const struct inventory *inv)
{
	for (size_t i = 0; i < h->count; i++) {
		struct mig_hold *hold = &h->items[i];
		const struct card *card = inventory_find(inv, hold->gpu_uuid);

		if (hold->over || !hold->ready || card == NULL || mig_find_device(&card->mig, hold->made.uuid) != NULL)
			continue;
		hold->ready = hold->told = false;
		hold->not_before_ms = 0;
	}
}

void mig_hold_find_made(struct mig_hold *h, const struct inventory *inv)
{
	const struct card *card = inventory_find(inv, h->gpu_uuid);

	for (size_t i = 0; !h->ready && card != NULL && i < card->mig.device_count; i++)
		if (card->mig.devices[i].at.start == h->at.start && card->mig.devices[i].at.size == h->at.size) {
			h->made = card->mig.devices[i];
			h->ready = true;
		}
}

/* ---- who holds what */

bool mig_holds_place(const struct mig_holds *h, const char *gpu_uuid, struct mig_placement at)
{
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->items[i].gpu_uuid, gpu_uuid) == 0 && h->items[i].at.start == at.start &&
		    h->items[i].at.size == at.size)
			return true;
	return mig_holds_blind(h, gpu_uuid);
}

bool mig_holds_rival(const struct mig_holds *h, const struct mig_hold *hold)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct mig_hold *other = &h->items[i];

		if (other != hold && (other->over ? !other->ended : other->ready) &&
		    strcmp(other->gpu_uuid, hold->gpu_uuid) == 0 && mig_overlaps(other->at, hold->at))
			return true;
	}
	return false;
}

bool mig_holds_passes_on(const struct mig_holds *h, const struct mig_hold *ended)
{
	for (size_t i = 0; ended->ended && i < h->count; i++) {
		const struct mig_hold *other = &h->items[i];

		if (!other->over && strcmp(other->gpu_uuid, ended->gpu_uuid) == 0 &&
		    strcmp(other->profile, ended->profile) == 0 && other->at.start == ended->at.start &&
		    other->at.size == ended->at.size)
			return true;
	}
	return false;
}

bool mig_holds_ended(const struct mig_holds *h, const char *pod_uid)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->items[i].ended && strcmp(h->items[i].pod_uid, pod_uid) == 0)
			return true;
	return false;
}

bool mig_holds_card(const struct mig_holds *h, const char *gpu_uuid)
{
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->items[i].gpu_uuid, gpu_uuid) == 0)
			return true;
	return mig_holds_blind(h, gpu_uuid);
}
