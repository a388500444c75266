/* Says that a card turned sick or well: in the log, and by events on the Node and on each pod that holds a part of it.
 * Nobody is ended: what a program on a sick card does about it is its owner's. */
#ifndef HM_AGENT_CARDS_CARD_TELL_H
#define HM_AGENT_CARDS_CARD_TELL_H

#include "agent/cards/card_health.h"
#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"

/* now: as the state's times. A NULL or off cluster: the log alone. */
void card_tell(struct cluster *c, const struct claims *claims, const struct card_state *s, struct card_now now);

#endif
