/* Who holds what: one record for each pod that has a share of a card, or may have one. What it counts for on the cards
 * of its node is worked out when it comes or goes (node_book.h); here is what it said. */
#ifndef HM_MODEL_PLACEMENT_HOLDING_H
#define HM_MODEL_PLACEMENT_HOLDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "core/link.h"
#include "model/placement/budgets.h"
#include "model/placement/pod_ask.h"
#include "model/placement/pod_use.h"
#include "model/placement/quota.h"

/* A pod counts only where it is bound, or where we promised it the cards ourselves. */
enum hold_state {
	HOLD_RESERVED,    /* promised, until a time */
	HOLD_BINDING,     /* promised, its Binding is on the way: no time ends it */
	HOLD_BOUND,       /* the API server says so */
	HOLD_TERMINATING, /* the same, being deleted: it holds until it is gone */
};

/* The instance that an agent made of a share; its ids are looked at by nobody but who wants to see them. */
struct hold_made {
	const char *uuid; /* NULL or "": none yet */
	uint32_t gpu_instance, compute_instance;
};

/* A share as annotations have it. */
struct hold_share {
	uint32_t container; /* by the order of the asks */
	const char *uuid;
	int32_t memory_mib, cores;
	const char *profile;     /* of a MIG instance; NULL or "" otherwise */
	struct mig_placement at; /* size 0: no MIG instance */
	struct hold_made made;   /* of a MIG instance */
};

/* What a holding is made of; all borrowed. */
struct hold {
	const char *uid, *name_space, *name, *node;
	enum hold_state state;
	uint64_t expires_ms; /* of HOLD_RESERVED */
	/* What it holds cannot be known (a text without signature, or that cannot be read): it counts on each card of
	 * its node as the most that the asks let it hold there, and `shares` is not looked at. */
	bool unreadable;
	const struct card_ask
		*asks; /* of each container; what is beyond counts as an app container that asks nothing */
	size_t ask_count;
	const struct hold_share *shares; /* in the order of containers */
	size_t share_count;
	int32_t priority;
	const char *labels; /* of the pod, a line each (pod_labels_add); NULL or "": none */
};

struct node_book;

/* Others only read it. */
struct holding {
	struct link of_node;     /* node_book's list */
	struct link of_reserved; /* cluster's, while HOLD_RESERVED */
	struct node_book *node;
	struct quota_space *space;
	struct quota_amount charged; /* to `space` now */
	uint64_t expires_ms;
	uint32_t bound_in; /* cluster's count of lists when it was bound */
	const char *uid, *name;
	enum hold_state state;
	int32_t priority;
	bool unreadable, applied;
	bool told; /* the watch says that it is bound, not only we do */
	uint32_t share_count, kind_count;
	uint32_t container_count; /* of the pod, those without a share too */
	struct card_share
		*shares;       /* card: the node_book's number of its UUID; profile: where its name stands in texts */
	enum ask_kind *kinds;  /* of containers, up to the last that is no app container */
	struct card_ask *asks; /* of each container; only where unreadable */
	const char *texts;
	struct pod_labels *labels; /* owned; NULL: none */
};

enum { HOLDING_MAX_SHARES = 4096 }; /* a text of the size that annotations may have names four times that */

/* On no list, of no node and namespace yet; `card` of a share is its place in h->shares, for node_book_add. -HM_EINVAL
 * where an amount is negative, shares are not in order of their containers, or there are too many; -HM_ENOMEM. */
int holding_new(const struct hold *h, struct holding **out, struct hm_err *e) HM_MUST_USE;
void holding_free(struct holding *h);

/* "" where the share is no MIG instance. */
const char *holding_profile(const struct holding *h, const struct card_share *s);
struct hold_made holding_made(const struct holding *h, const struct card_share *s);

/* What the namespace is charged. card_mib: the memory of its node's largest card, for what is unreadable and asks for
 * a percentage. */
struct quota_amount holding_amount(const struct holding *h, int32_t card_mib);

/* On one card of so much memory, where the holding is unreadable. */
struct card_use holding_most(const struct holding *h, int32_t card_mib);

#endif
