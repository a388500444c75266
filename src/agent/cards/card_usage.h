/* What NVML says of the cards as wholes, memory in use and utilization, read every few seconds in the worker: its calls
 * may hang, and a scraper is not to wait for them. */
#ifndef HM_AGENT_CARDS_CARD_USAGE_H
#define HM_AGENT_CARDS_CARD_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/cards/driver.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"
#include "model/inventory.h"

enum {
	CARD_USAGE_EVERY_MS = 5000,
	CARD_USAGE_STALE_MS = 20000, /* older figures are not shown: NVML hangs, or the card is gone */
};

struct card_figures {
	bool has_memory, has_busy;
	uint64_t memory_used_bytes;
	unsigned busy_percent, memory_busy_percent;
};

struct card_usage;

/* All borrowed. */
int card_usage_new(struct loop *l, struct worker *w, const struct driver *d, struct card_usage **out,
		   struct hm_err *e) HM_MUST_USE;
/* After worker_free only; where its reading hangs there, it stays to the process's end. */
void card_usage_free(struct card_usage *u);

/* The cards to read from now on; copied. */
void card_usage_set_cards(struct card_usage *u, const struct inventory *inv);
/* NULL where there are no figures, or only old ones. */
const struct card_figures *card_usage_find(const struct card_usage *u, const char *uuid);

#endif
