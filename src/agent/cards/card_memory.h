/* What an agent that starts anew must not forget: which cards are sick, in a file of the state folder. Its mark says
 * which boot of the node and which load of the driver it speaks of; of another it says nothing, as both reset the
 * cards.
 *
 *     hami-vgpu-health 1
 *     mark=<boot id> <inode of the driver's module>
 *     sick=<uuid> reset=<0|1> xid=<n> since=<ms since 1970> ecc=<count, or -> why=<the rest of the line>
 *     end
 */
#ifndef HM_AGENT_CARDS_CARD_MEMORY_H
#define HM_AGENT_CARDS_CARD_MEMORY_H

#include <stddef.h>

#include "agent/cards/card_health.h"
#include "base/str.h"
#include "core/err.h"

enum { CARD_MARK_BYTES = 96, CARD_MEMORY_MAX_BYTES = 16384 };

/* proc and sys: /proc and /sys, others in tests. What cannot be read is "-". */
void card_memory_mark(const char *proc, const char *sys, char out[CARD_MARK_BYTES]);

void card_memory_text(const struct card_health *h, const char *mark, struct str *out);
/* Recalls what the text says (card_health_recall). Another mark: nothing. -HM_EPROTO: nothing is recalled. */
int card_memory_parse(const char *text, size_t n, const char *mark, struct card_health *h,
		      struct hm_err *e) HM_MUST_USE;

#endif
