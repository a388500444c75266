#include "model/placement/node_book.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/check.h"
#include "core/fmt.h"

struct node_book *node_book_new(const char *name)
{
	hm_auto(node_book) *b = calloc(1, sizeof *b);

	if (b == NULL)
		return NULL;
	list_init(&b->holdings);
	b->name = strdup(name);
	return b->name == NULL ? NULL : HM_STEAL(b);
}

void node_book_free(struct node_book *b)
{
	if (b == NULL)
		return;
	CHECK(list_empty(&b->holdings) && b->host_users == 0);
	node_state_free(b->state);
	free(b->name);
	free(b->cards);
	free(b->scratch);
	free(b);
}

/* ---- what a holding counts for: the same while neither it nor the node's state changes, so that what was taken is
 * what is given back */

static void block_cut_cards(struct node_state *n, bool take)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->cards[i].mig)
			node_state_block(n, i, take);
}

/* The MIG side of one share. */
static int count_instance(struct node_book *b, const struct card_share *s, bool take, struct hm_err *e)
{
	int card = b->cards[s->card].card;

	if (card == NODE_NO_CARD) {
		if (s->at.size > 0)
			block_cut_cards(b->state, take);
		return 0;
	}
	if (b->state->cards[card].mig != (s->at.size > 0))
		node_state_block(b->state, (size_t)card, take);
	else if (s->at.size > 0 && take)
		return node_state_occupy(b->state, (size_t)card, s->at, e);
	else if (s->at.size > 0)
		node_state_vacate(b->state, (size_t)card, s->at);
	return 0;
}

static void count_use(struct node_state *n, size_t card, const struct card_use *use, bool take)
{
	if (take)
		node_state_take(n, card, use);
	else
		node_state_give(n, card, use);
}

static void count_unreadable(struct node_state *n, const struct holding *h, bool take)
{
	for (size_t i = 0; i < n->count; i++) {
		struct card_use use = holding_most(h, n->cards[i].memory_mib);
		if (use.slots == 0)
			continue;
		count_use(n, i, &use, take);
		if (n->cards[i].mig)
			node_state_block(n, i, take);
	}
}

static void give(struct node_book *b, struct holding *h, size_t instances)
{
	for (size_t i = 0; i < instances; i++)
		(void)!count_instance(b, &h->shares[i], false, NULL);
}

static void count_shares(struct node_book *b, struct holding *h, bool take)
{
	size_t n = pod_use_by_card(h->shares, h->share_count, h->kinds, h->kind_count, b->scratch);

	for (size_t i = 0; i < n; i++) {
		int card = b->cards[b->scratch[i].card].card;
		if (card != NODE_NO_CARD)
			count_use(b->state, (size_t)card, &b->scratch[i].use, take);
	}
}

/* -HM_ENOMEM changes nothing; never for what was counted on this state before. */
static int apply(struct node_book *b, struct holding *h, struct hm_err *e)
{
	if (b->state == NULL)
		return 0;
	for (size_t i = 0; i < h->share_count; i++) {
		int err = count_instance(b, &h->shares[i], true, e);
		if (err < 0) {
			give(b, h, i);
			return err;
		}
	}
	if (h->unreadable)
		count_unreadable(b->state, h, true);
	else
		count_shares(b, h, true);
	h->applied = true;
	return 0;
}

static void unapply(struct node_book *b, struct holding *h)
{
	if (!h->applied)
		return;
	give(b, h, h->share_count);
	if (h->unreadable)
		count_unreadable(b->state, h, false);
	else
		count_shares(b, h, false);
	h->applied = false;
}

/* ---- the UUIDs that are named */

static int find_card(const struct node_book *b, const char *uuid)
{
	return b->state != NULL ? node_state_find(b->state, uuid) : NODE_NO_CARD;
}

/* Number of the UUID's place; negative: -HM_ENOMEM. */
static int name_card(struct node_book *b, const char *uuid)
{
	size_t at = b->card_count;

	for (size_t i = 0; i < b->card_count; i++) {
		if (strcmp(b->cards[i].uuid, uuid) == 0) {
			b->cards[i].shares++;
			return (int)i;
		}
		if (b->cards[i].shares == 0)
			at = i;
	}
	if (at == b->card_count && !HM_PUSH(b->cards, b->card_count, b->card_cap, (struct held_card) { 0 }))
		return -HM_ENOMEM;
	b->cards[at] = (struct held_card) { .shares = 1, .card = find_card(b, uuid) };
	hm_fmt(b->cards[at].uuid, sizeof b->cards[at].uuid, "%s", uuid);
	return (int)at;
}

static void forget_cards(struct node_book *b, struct holding *h, size_t named)
{
	for (size_t i = 0; i < named; i++)
		b->cards[h->shares[i].card].shares--;
	while (b->card_count > 0 && b->cards[b->card_count - 1].shares == 0)
		b->card_count--;
}

static int name_cards(struct node_book *b, struct holding *h, const struct hold_share *uuids)
{
	for (size_t i = 0; i < h->share_count; i++) {
		int place = name_card(b, uuids[i].uuid);
		if (place < 0) {
			forget_cards(b, h, i);
			return place;
		}
		h->shares[i].card = (uint32_t)place;
	}
	return 0;
}

/* ---- holdings */

int node_book_add(struct node_book *b, struct holding *h, const struct hold_share *uuids, struct hm_err *e)
{
	int err;

	if (!array_reserve(&b->scratch, &b->scratch_cap, h->share_count, sizeof b->scratch[0]) ||
	    name_cards(b, h, uuids) < 0)
		return hm_err_set(e, HM_ENOMEM, "holders of node %s", b->name);
	err = apply(b, h, e);
	if (err < 0) {
		forget_cards(b, h, h->share_count);
		return err;
	}
	h->node = b;
	link_append(&b->holdings, &h->of_node);
	b->holding_count++;
	return 0;
}

void node_book_remove(struct node_book *b, struct holding *h)
{
	CHECK(h->node == b);
	unapply(b, h);
	forget_cards(b, h, h->share_count);
	link_remove(&h->of_node);
	b->holding_count--;
	h->node = NULL;
}

void node_book_lift(struct node_book *b, struct holding *h)
{
	unapply(b, h);
}

void node_book_put_down(struct node_book *b, struct holding *h)
{
	CHECK(apply(b, h, NULL) == 0);
}

/* ---- CPU and memory */

/* More than all may be taken: pods that were bound by others, or a node that became smaller. */
static int64_t rest_of(int64_t all, int64_t used)
{
	return all < 0 ? -1 : HM_MAX(all - used, 0);
}

static void show_host(struct node_book *b)
{
	if (b->state == NULL)
		return;
	b->state->cpu_milli = rest_of(b->host_all.cpu_milli, b->host_used.cpu_milli);
	b->state->host_mib = rest_of(b->host_all.mib, b->host_used.mib);
}

void node_book_set_host(struct node_book *b, struct host_amount all)
{
	b->host_all = all;
	show_host(b);
}

void node_book_take_host(struct node_book *b, struct host_amount used)
{
	b->host_users++;
	b->host_used.cpu_milli += used.cpu_milli;
	b->host_used.mib += used.mib;
	show_host(b);
}

void node_book_give_host(struct node_book *b, struct host_amount used)
{
	CHECK(b->host_users > 0);
	b->host_users--;
	b->host_used.cpu_milli -= used.cpu_milli;
	b->host_used.mib -= used.mib;
	show_host(b);
}

/* ---- the node itself */

static void find_cards(struct node_book *b)
{
	for (size_t i = 0; i < b->card_count; i++)
		b->cards[i].card = find_card(b, b->cards[i].uuid);
}

static void mark(struct node_book *b, bool applied)
{
	LIST_FOR_EACH (&b->holdings, at)
		HM_CONTAINER(at, struct holding, of_node)->applied = applied;
}

int node_book_set_state(struct node_book *b, struct node_state *take_state, struct hm_err *e)
{
	struct node_state *old = b->state;

	b->state = take_state;
	find_cards(b);
	mark(b, false);
	LIST_FOR_EACH (&b->holdings, at) {
		int err = apply(b, HM_CONTAINER(at, struct holding, of_node), e);
		if (err == 0)
			continue;
		b->state = old;
		find_cards(b);
		mark(b, old != NULL);
		node_state_free(take_state);
		return err;
	}
	node_state_free(old);
	if (take_state != NULL)
		node_book_set_host(b, (struct host_amount) { take_state->cpu_milli, take_state->host_mib });
	return 0;
}

bool node_book_waits(const struct node_book *b, const struct holding *h)
{
	if (b->state == NULL)
		return true;
	for (size_t i = 0; i < h->share_count; i++)
		if (b->cards[h->shares[i].card].card == NODE_NO_CARD)
			return true;
	return false;
}

int32_t node_book_largest_card(const struct node_book *b)
{
	int32_t most = 0;

	for (size_t i = 0; b->state != NULL && i < b->state->count; i++)
		most = HM_MAX(most, b->state->cards[i].memory_mib);
	return most;
}
