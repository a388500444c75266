/* Operating mode mig: what each card offers, by the administrator's list (device-config.yaml's migProfileAllowlist) and
 * what the card can. Annotation and device list count by it alike. Pure. */
#ifndef HM_AGENT_CARDS_MIG_CARDS_H
#define HM_AGENT_CARDS_MIG_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/options/hami_options.h"
#include "core/err.h"
#include "hami/register_text.h"
#include "model/inventory.h"

bool mig_cards_wanted(const struct hami_options *o); /* the node's operating mode is mig */
/* We cut this card: it has MIG, the list names its model, and it is not left out. */
bool mig_cards_is_ours(const struct hami_options *o, const struct card *card);
/* What it may be cut into, under the list's names; none while its MIG mode is off. */
size_t mig_cards_profiles(const struct hami_options *o, const struct card *card,
			  struct mig_profile out[MIG_MAX_PROFILES]);
/* Into how many devices at most. */
unsigned mig_cards_count(const struct hami_options *o, const struct card *card);

/* hami_profiles' add (agent/cards/hami_cards.h); `arg` is the struct hami_options. */
int mig_cards_add(void *arg, const struct card *card, struct node_register *into, int32_t *count, struct hm_err *e);

#endif
