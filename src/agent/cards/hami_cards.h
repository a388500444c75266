/* Our cards as HAMi's scheduler knows them: which are offered, in which order, and what the Node's annotations say of
 * each. Values and rounding are HAMi's (floats cut to whole numbers); the order is the driver's, and stays when a card
 * is lost. */
#ifndef HM_AGENT_CARDS_HAMI_CARDS_H
#define HM_AGENT_CARDS_HAMI_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cards/fleet.h"
#include "agent/options/options.h"
#include "base/str.h"
#include "core/err.h"
#include "hami/register_text.h"

struct hami_card {
	const struct card *card; /* of the fleet's inventory */
	size_t at;               /* its place there */
	bool healthy;
	uint64_t memory_mib; /* NVML's, or what the administrator says of a card whose memory NVML cannot tell */
};

/* Cards that are offered, at most HM_MAX_CARDS. A card whose memory nobody tells is not. */
size_t hami_cards_of(const struct fleet *f, const struct hami_options *o, struct hami_card out[HM_MAX_CARDS]);

/* Operating mode "mig": what a card offers comes from elsewhere. Adds the profiles to the device added last, and says
 * how many instances there may be of the smallest; *count 0: the card has none and is not registered. */
struct hami_profiles {
	int (*add)(void *arg, const struct card *card, struct node_register *into, int32_t *count, struct hm_err *e);
	void *arg;
};

/* Appends hami.io/node-nvidia-register; nothing where no card is offered (HAMi's scheduler takes "[]" for an error, and
 * goes by what the kubelet has). `profiles` may be NULL. */
int hami_cards_register_text(const struct fleet *f, const struct agent_options *o, const struct hami_profiles *profiles,
			     struct str *out, struct hm_err *e) HM_MUST_USE;

/* Appends hami.io/node-nvidia-score; *asymmetric: two cards disagree about their NVLinks. */
int hami_cards_score_text(const struct fleet *f, const struct hami_options *o, struct str *out, bool *asymmetric,
			  struct hm_err *e) HM_MUST_USE;

#endif
