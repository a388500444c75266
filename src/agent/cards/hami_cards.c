#include "agent/cards/hami_cards.h"

#include <stdlib.h>
#include <string.h>

#include "agent/options/hami_files.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/score_text.h"
#include "model/score.h"

static bool comes_before(const struct hami_card *a, const struct hami_card *b)
{
	return a->card->index != b->card->index ? a->card->index < b->card->index
						: strcmp(a->card->uuid, b->card->uuid) < 0;
}

/* In MIG mode, and not ours to cut: as a whole it is of no use, CUDA finds no device there. (HAMi's plugin offers it
 * with strategy none.) */
static bool is_cut(const struct card *card, const struct hami_options *o)
{
	return card->mig_enabled && strcmp(o->operating_mode, HAMI_MODE_MIG) != 0;
}

size_t hami_cards_of(const struct fleet *f, const struct hami_options *o, struct hami_card out[HM_MAX_CARDS])
{
	const struct inventory *inv = fleet_inventory(f);
	size_t n = 0;

	for (size_t i = 0; i < inv->count && n < HM_MAX_CARDS; i++) {
		const struct card *card = &inv->cards[i];
		struct hami_card one = { card, i, fleet_is_healthy(f, card), card->memory_bytes >> 20 };
		size_t at = n;

		if (card->memory_bytes == 0)
			one.memory_mib = o->preconfigured_memory_mib;
		if (one.memory_mib == 0 || hami_files_leave_out(o, card->uuid, card->index) || is_cut(card, o))
			continue;
		for (; at > 0 && comes_before(&one, &out[at - 1]); at--)
			out[at] = out[at - 1];
		out[at] = one;
		n++;
	}
	return n;
}

/* As Go's int32(x) where that is defined. */
static int32_t whole(double x)
{
	return x >= INT32_MAX ? INT32_MAX : x <= 0 ? 0 : (int32_t)x;
}

static int add_card(const struct hami_card *card, const struct agent_options *o, const struct hami_profiles *profiles,
		    struct node_register *r, struct hm_err *e)
{
	const struct hami_options *h = &o->hami;
	bool mig = strcmp(h->operating_mode, HAMI_MODE_MIG) == 0;
	double memory = (double)card->memory_mib;
	struct register_device d = {
		.index = card->card->index,
		.count = (int32_t)h->device_split_count,
		.memory_mib = whole(mig || h->device_memory_scaling == 1 ? memory : memory * h->device_memory_scaling),
		.cores = mig ? 100 : whole(h->device_cores_scaling * 100),
		.numa = card->card->numa_node > 0 ? card->card->numa_node : 0,
		.healthy = card->healthy,
		.late_binding = agent_binds_late(o),
	};

	hm_fmt(d.id, sizeof d.id, "%s", card->card->uuid);
	hm_fmt(d.mode, sizeof d.mode, "%s", h->operating_mode);
	if (!register_type(card->card->model, d.type))
		return hm_err_set(e, HM_ELIMIT, "%s: its product name is too long", card->card->uuid);
	if (register_add_device(r, &d, e) < 0)
		return -e->code;
	if (!mig || profiles == NULL)
		return 0;
	if (profiles->add(profiles->arg, card->card, r, &r->devices[r->device_count - 1].count, e) < 0)
		return -e->code;
	if (r->devices[r->device_count - 1].count == 0)
		r->device_count--;
	return 0;
}

/* A MIG device of strategy single, which the kubelet has once. */
static int add_mig(const struct fleet *f, const struct card *card, const struct mig_device *mig,
		   const struct agent_options *o, struct node_register *r, struct hm_err *e)
{
	struct register_device d = { .index = card->index,
				     .count = 1,
				     .memory_mib = (int32_t)mig->memory_mib,
				     .cores = 100,
				     .numa = card->numa_node > 0 ? card->numa_node : 0,
				     .healthy = fleet_is_healthy(f, card),
				     .late_binding = agent_binds_late(o) };
	char model[sizeof card->model + MIG_NAME_BYTES + 8];

	hm_fmt(d.id, sizeof d.id, "%s", mig->uuid);
	hm_fmt(d.mode, sizeof d.mode, "%s", o->hami.operating_mode);
	hm_fmt(model, sizeof model, "%s MIG %s", card->model, mig->profile);
	if (!register_type(model, d.type))
		return hm_err_set(e, HM_ELIMIT, "%s: its product name is too long", mig->uuid);
	return register_add_device(r, &d, e);
}

static int add_all_mig(const struct fleet *f, const struct agent_options *o, struct node_register *r, struct hm_err *e)
{
	const struct inventory *inv = fleet_inventory(f);

	for (size_t i = 0; i < inv->count; i++)
		for (size_t k = 0; k < inv->cards[i].mig.device_count; k++)
			if (add_mig(f, &inv->cards[i], &inv->cards[i].mig.devices[k], o, r, e) < 0)
				return -e->code;
	return 0;
}

int hami_cards_register_text(const struct fleet *f, const struct agent_options *o, const struct hami_profiles *profiles,
			     struct str *out, struct hm_err *e)
{
	struct hami_card cards[HM_MAX_CARDS];
	size_t n = hami_cards_of(f, &o->hami, cards);
	hm_auto_node_register r = { 0 };

	for (size_t i = 0; i < n; i++)
		if (add_card(&cards[i], o, profiles, &r, e) < 0)
			return hm_err_wrap(e, "register text");
	if (strcmp(o->hami.mig_strategy, "single") == 0 && add_all_mig(f, o, &r, e) < 0)
		return hm_err_wrap(e, "register text");
	if (r.device_count > 0)
		register_text_write(&r, out);
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "register text") : 0;
}

int hami_cards_score_text(const struct fleet *f, const struct hami_options *o, struct str *out, bool *asymmetric,
			  struct hm_err *e)
{
	struct hami_card cards[HM_MAX_CARDS];
	size_t n = hami_cards_of(f, o, cards);
	hm_auto_heap int32_t *scores = calloc(n * n + 1, sizeof *scores);
	const char *uuids[HM_MAX_CARDS];

	*asymmetric = false;
	if (scores == NULL)
		return hm_err_set(e, HM_ENOMEM, "score text");
	for (size_t a = 0; a < n; a++) {
		uuids[a] = cards[a].card->uuid;
		for (size_t b = 0; b < n; b++) {
			struct card_score s = score_pair(fleet_inventory(f), cards[a].at, cards[b].at);

			scores[a * n + b] = (int32_t)s.points;
			*asymmetric |= s.asymmetric;
		}
	}
	if (n > 0)
		score_text_write(uuids, scores, n, out);
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "score text") : 0;
}
