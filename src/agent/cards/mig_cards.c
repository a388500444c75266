#include "agent/cards/mig_cards.h"

#include <string.h>

#include "agent/options/hami_files.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/device_config.h"

bool mig_cards_wanted(const struct hami_options *o)
{
	return o->operating_mode != NULL && strcmp(o->operating_mode, HAMI_MODE_MIG) == 0;
}

static size_t allowed(const struct hami_options *o, const struct card *card, struct mig_profile *out, bool *listed)
{
	return mig_allowed(o->device != NULL && o->device->mig.count > 0 ? &o->device->mig : NULL, card->model,
			   card->memory_bytes, &card->mig, out, listed);
}

bool mig_cards_is_ours(const struct hami_options *o, const struct card *card)
{
	struct mig_profile profiles[MIG_MAX_PROFILES];
	bool listed;

	if (!mig_cards_wanted(o) || !card->mig.capable || hami_files_leave_out(o, card->uuid, card->index))
		return false;
	allowed(o, card, profiles, &listed);
	return listed;
}

size_t mig_cards_profiles(const struct hami_options *o, const struct card *card,
			  struct mig_profile out[MIG_MAX_PROFILES])
{
	bool listed;

	return mig_cards_is_ours(o, card) && card->mig_enabled ? allowed(o, card, out, &listed) : 0;
}

unsigned mig_cards_count(const struct hami_options *o, const struct card *card)
{
	struct mig_profile profiles[MIG_MAX_PROFILES];

	return mig_most_instances(profiles, mig_cards_profiles(o, card, profiles));
}

static int add_profile(const struct mig_profile *p, const struct card *card, struct node_register *into,
		       struct hm_err *e)
{
	struct register_placement places[MIG_MAX_STARTS];
	struct register_profile out = { .memory_mib = (int32_t)p->memory_mib,
					.cores = (int32_t)mig_cores(p, &card->mig),
					.slices = (int32_t)p->slices };

	hm_fmt(out.name, sizeof out.name, "%s", p->name);
	for (size_t i = 0; i < p->start_count; i++)
		places[i] = (struct register_placement) { p->starts[i], p->size };
	return register_add_profile(into, &out, places, p->start_count, e);
}

int mig_cards_add(void *arg, const struct card *card, struct node_register *into, int32_t *count, struct hm_err *e)
{
	const struct hami_options *o = arg;
	struct mig_profile profiles[MIG_MAX_PROFILES];
	size_t n = mig_cards_profiles(o, card, profiles);

	for (size_t i = 0; i < n; i++)
		if (add_profile(&profiles[i], card, into, e) < 0)
			return -e->code;
	*count = (int32_t)mig_most_instances(profiles, n);
	return 0;
}
