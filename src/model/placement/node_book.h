/* A node and those who hold something of it, whether or not the node and its cards are there: a holding that names an
 * unknown node or card waits until it comes. What holdings count for:
 *
 *   - a share on a card of the node: as pod_use.h says;
 *   - a share on a card that the node does not have: nothing;
 *   - MIG, where the record does not agree with the cards (an instance on a card that is not cut, a share without
 *     instance on one that is, an instance on an unknown card): nobody can tell what is free, so the card, or all of
 * the node's cards that are cut, are blocked while the holding lasts;
 *   - an unreadable holding: on each card the most that it could have there, and a card that is cut is blocked.
 *
 * CPU and memory of the node are kept beside: what it has and what its pods (host_use.h) have of it. What is left
 * stands in the state, whichever that is. */
#ifndef HM_MODEL_PLACEMENT_NODE_BOOK_H
#define HM_MODEL_PLACEMENT_NODE_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "core/link.h"
#include "model/placement/holding.h"
#include "model/placement/node_state.h"

struct held_card {
	char uuid[HM_UUID_BYTES];
	uint32_t shares; /* that name it; 0: the place is free */
	int card;        /* of the state; NODE_NO_CARD */
};

struct node_book {
	char *name;
	struct node_state *state; /* owned; NULL while the node is not there */
	struct link holdings;     /* struct holding.of_node */
	size_t holding_count;
	struct held_card *cards;
	size_t card_count, card_cap;
	struct card_hold *scratch; /* room for the largest holding's cards */
	size_t scratch_cap;
	struct host_amount host_all; /* -1: not known */
	struct host_amount host_used;
	size_t host_users;
};

struct node_book *node_book_new(const char *name); /* NULL where memory is short */
void node_book_free(struct node_book *b);          /* without holdings and users of the host */
HM_DEFINE_AUTO(node_book, node_book_free);

/* The holding becomes one of this node, shares[i] being of uuids[i].uuid, and counts. -HM_ENOMEM changes nothing. */
int node_book_add(struct node_book *b, struct holding *h, const struct hold_share *uuids, struct hm_err *e) HM_MUST_USE;
void node_book_remove(struct node_book *b, struct holding *h);

/* For a moment the holding does not count on the cards; nothing else changes until it is put down. */
void node_book_lift(struct node_book *b, struct holding *h);
void node_book_put_down(struct node_book *b, struct holding *h);

/* The node's cards, CPU and memory are these from now on (NULL: it is gone); nothing is taken of *take_state yet.
 * -HM_ENOMEM changes nothing; take_state is freed then, too. */
int node_book_set_state(struct node_book *b, struct node_state *take_state, struct hm_err *e) HM_MUST_USE;

/* CPU and memory of the node while its cards stay. */
void node_book_set_host(struct node_book *b, struct host_amount all);
/* A pod comes or goes. */
void node_book_take_host(struct node_book *b, struct host_amount used);
void node_book_give_host(struct node_book *b, struct host_amount used);

/* A card that the holding has a share of is not there (nor is its node). */
bool node_book_waits(const struct node_book *b, const struct holding *h);

int32_t node_book_largest_card(const struct node_book *b); /* MiB; 0 without cards */

#endif
