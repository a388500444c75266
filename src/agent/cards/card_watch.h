/* Looks after the cards in the worker: takes what the driver reports of each several times a second, without waiting
 * for it, and asks each card once a second how it is; tells card_health. The one NVML thread stays free for others: a
 * look takes about as long as the calls themselves. An NVML that hangs stops the looks and nothing else. */
#ifndef HM_AGENT_CARDS_CARD_WATCH_H
#define HM_AGENT_CARDS_CARD_WATCH_H

#include "agent/cards/card_health.h"
#include "agent/cards/driver.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"

enum {
	CARD_WATCH_EVERY_MS = 500,
	CARD_WATCH_ASK_EVERY = 2,   /* looks: how often a card is asked that nothing happened to */
	CARD_WATCH_RETRY_MS = 1000, /* after the events of a card could not be had, then twice as long each time */
	CARD_WATCH_RETRY_MAX_MS = 60000,
	CARD_WATCH_EVENTS = 16, /* different ones of one card in one look */
};

struct card_watch_config {
	struct worker *worker;
	struct driver *driver;
	struct card_health *health;
	void (*looked)(void *arg); /* after each look: card_health knows all that came of it */
	void *arg;
};

struct card_watch;

/* All of config is borrowed. */
int card_watch_new(struct loop *l, const struct card_watch_config *config, struct card_watch **out,
		   struct hm_err *e) HM_MUST_USE;
/* A look at once: there may be new cards, whose events are told from their first look on. */
void card_watch_soon(struct card_watch *w);
/* After worker_free only. A look that hangs in the worker keeps it to the process's end. */
void card_watch_free(struct card_watch *w);

#endif
