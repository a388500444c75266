/* Which cards are well, and why not. Pure: told what was seen, with the time.
 *
 *  - A card turns sick at once: by an Xid of the card's own (agent/cards/xid.h), by a double-bit ECC error, when it is
 * lost or errs, and when the driver says that it needs a reset. One cause is kept, the gravest.
 *  - It turns well when it has been well for `recovery_ms` without a break: it answers, and the driver asks for
 * nothing.
 *  - A cause that needs a reset ends only where a reset is shown: by the driver's word (R565 and newer tell what they
 *    want done; nothing, here), or because the card was away since, or the driver was loaded anew; and then no row may
 *    wait for its remapping or have failed to be. A driver that tells is believed in all of this.
 *
 * A driver that is gone makes no card sick (the fleet has none then); when it is back, all begin anew. */
#ifndef HM_AGENT_CARDS_CARD_HEALTH_H
#define HM_AGENT_CARDS_CARD_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cards/xid.h"
#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "gpu/events.h"
#include "gpu/vitals.h"
#include "model/inventory.h"

enum {
	CARD_XIDS = 24,      /* different ones counted for a card; the others are counted as number 0 */
	CARD_GAP_MS = 10000, /* a card that was not asked for so long begins its recovery anew */
};
struct card_now {
	uint64_t ms, wall_ms; /* monotonic; since 1970 */
};

struct card_state {
	char uuid[HM_UUID_BYTES];
	bool sick;
	char why[256]; /* of the sickness that is, or was last: "Xid 79: the GPU has fallen off the bus" */
	unsigned xid;  /* that made it sick; 0: something else */
	bool needs_reset;
	uint64_t since_wall_ms; /* sick since; 0 while well */
	uint64_t turned_sick, recovered;
	struct {
		unsigned xid;
		uint64_t count;
	} xids[CARD_XIDS]; /* by first appearance; count 0: free */
	/* Its own. */
	bool recalled; /* and no scan found it yet */
	bool away;     /* since it turned sick: lost, reset, or the driver was loaded anew */
	bool ecc_known;
	uint64_t uncorrected;
	uint64_t well_ms, asked_ms; /* 0: not well; never */
};

struct card_listener {
	/* A card turned sick (s->sick) or well; from inside the calls below, the state is what it is now. */
	void (*turned)(void *arg, const struct card_state *s);
	/* A graver cause took the place of the one before. */
	void (*worse)(void *arg, const struct card_state *s);
	void *arg;
};

struct card_health;

/* The policy is copied. recovery_ms 0: a sick card stays sick. */
int card_health_new(const struct health_policy *policy, uint64_t recovery_ms, const struct card_listener *listener,
		    struct card_health **out, struct hm_err *e) HM_MUST_USE;
void card_health_free(struct card_health *h);
HM_DEFINE_AUTO(card_health, card_health_free);

/* A card that was sick when an agent before us knew of it: uuid, needs_reset, xid, why, since_wall_ms and its count of
 * ECC errors. Before the first scan; one that this does not find is forgotten. Nobody is told. */
void card_health_recall(struct card_health *h, const struct card_state *sick);

/* What a scan found; NULL: there is no driver. New cards are well; a known one that is not there is lost. */
void card_health_scanned(struct card_health *h, const struct inventory *scanned, struct card_now now);

/* What came and what was asked of one card: first the events, then its answer (NULL: not asked). has_events: its driver
 * reports errors by itself, else the count of ECC errors tells. A card that is not known changes nothing. */
void card_health_note(struct card_health *h, const char *uuid, const struct gpu_event *events, size_t count,
		      const struct gpu_vitals *vitals, bool has_events, struct card_now now);

bool card_health_is_sick(const struct card_health *h, const char *uuid);

size_t card_health_count(const struct card_health *h);
const struct card_state *card_health_at(const struct card_health *h, size_t i);

/* The sick cards as JSON, for the node's annotation: [] or
 * [{"id":"GPU-...","reason":"Xid 79: ...","xid":79,"needsReset":true,"since":"2026-11-29T23:59:07Z"}]. */
void card_health_json(const struct card_health *h, struct str *out);

#endif
