#include "agent/hami/mig_fill.h"

#include <string.h>

#include "core/fmt.h"

static int fill_one(const struct inventory *inv, const struct mig_hold *h, struct claim_card *out, struct hm_err *e)
{
	const struct card *card = inventory_find(inv, h->gpu_uuid);
	const struct mig_profile *p = card != NULL ? mig_find_profile(&card->mig, h->profile) : NULL;

	if (h->bad)
		return hm_err_set(e, HM_EINVAL, "%s", h->trouble);
	if (!h->ready)
		return hm_err_set(e, HM_EAGAIN, "MIG device %s on %s is not made yet%s%s", h->profile, h->gpu_uuid,
				  h->trouble[0] != '\0' ? ": " : "", h->trouble);
	*out = (struct claim_card) { .memory_bytes = h->made.memory_mib << 20,
				     .cores = p != NULL ? mig_cores(p, &card->mig) : 100,
				     .gi = h->made.gi,
				     .ci = h->made.ci };
	hm_fmt(out->uuid, sizeof out->uuid, "%s", h->gpu_uuid);
	hm_fmt(out->mig, sizeof out->mig, "%s", h->made.uuid);
	return 0;
}

static bool is_of(const struct mig_hold *h, const char *uid, uint32_t entry)
{
	return !h->over && h->container == entry && strcmp(h->pod_uid, uid) == 0;
}

static size_t count_of(struct mig_holds *holds, const char *uid, uint32_t entry)
{
	size_t count = 0;

	for (size_t i = 0; i < mig_holds_count(holds); i++)
		count += is_of(mig_holds_at(holds, i), uid, entry);
	return count;
}

/* By device index, whatever numbers the record has; after NULL the first. */
static const struct mig_hold *next_of(struct mig_holds *holds, const char *uid, uint32_t entry,
				      const struct mig_hold *after)
{
	const struct mig_hold *next = NULL;

	for (size_t i = 0; i < mig_holds_count(holds); i++) {
		const struct mig_hold *h = mig_holds_at(holds, i);

		if (is_of(h, uid, entry) && (after == NULL || h->device > after->device) &&
		    (next == NULL || h->device < next->device))
			next = h;
	}
	return next;
}

/* The device entry names the card again: both must say the same. */
static int check_cards(const struct claim *c, const char *gpu_uuid, struct hm_err *e)
{
	for (size_t i = 0; i < c->card_count; i++)
		if (strcmp(c->cards[i].uuid, gpu_uuid) == 0)
			return 0;
	return hm_err_set(e, HM_EINVAL, "MIG reservation GPU %s does not match allocated GPU %s", gpu_uuid,
			  c->card_count > 0 ? c->cards[0].uuid : "none");
}

int mig_fill(struct mig_holds *holds, const struct inventory *inv, const char *pod_uid, const char *container,
	     uint32_t entry, size_t count, struct claim *out, struct hm_err *e)
{
	struct claim_card cards[HM_MAX_CARDS];
	size_t reserved = count_of(holds, pod_uid, entry);
	const struct mig_hold *h = NULL;

	if (reserved == 0 && mig_holds_blind(holds, out->card_count > 0 ? out->cards[0].uuid : ""))
		return hm_err_set(e, HM_EINVAL, "decode scheduler MIG allocations: they cannot be read");
	if (reserved != count || count > HM_MAX_CARDS)
		return hm_err_set(e, HM_EINVAL, "container %s has %zu MIG reservations, requested %zu devices",
				  container, reserved, count);
	for (size_t i = 0; i < count; i++) {
		h = next_of(holds, pod_uid, entry, h);
		if (h == NULL)
			return hm_err_set(e, HM_EINTERNAL, "MIG reservations of container %s", container);
		if (check_cards(out, h->gpu_uuid, e) < 0 || fill_one(inv, h, &cards[i], e) < 0)
			return -e->code;
	}
	memcpy(out->cards, cards, count * sizeof cards[0]);
	out->card_count = count;
	return 0;
}
