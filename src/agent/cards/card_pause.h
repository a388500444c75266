/* Keeping others off the cards while MIG changes them: publishing pauses, and HAMi's lock file tells its vGPUmonitor to
 * let NVML go (it does when the file is made, and goes on when it is removed; it does not acknowledge). */
#ifndef HM_AGENT_CARDS_CARD_PAUSE_H
#define HM_AGENT_CARDS_CARD_PAUSE_H

#include "agent/cluster/publish.h"
#include "core/cleanup.h"
#include "core/err.h"

struct card_pause;

/* Makes the folder (HAMI_APPLY_LOCK_DIR), which the monitor watches, and removes a lock that an earlier run left there:
 * a failure of that is logged, and the file is then not made. `publish` is borrowed. */
int card_pause_new(struct publish *publish, const char *folder, struct card_pause **out, struct hm_err *e) HM_MUST_USE;
void card_pause_free(struct card_pause *p); /* before its publish; the lock goes */
HM_DEFINE_AUTO(card_pause, card_pause_free);

/* `ready` is called once, from the loop, when nothing is being published: as publish_pause. */
void card_pause_begin(struct card_pause *p, void (*ready)(void *arg), void *arg);
void card_pause_end(struct card_pause *p);

#endif
