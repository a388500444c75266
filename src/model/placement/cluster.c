#include "model/placement/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "core/check.h"
#include "model/placement/cluster_state.h"

struct cluster *cluster_new(uint64_t memory_factor)
{
	hm_auto(cluster) *c = calloc(1, sizeof *c);

	if (c == NULL)
		return NULL;
	list_init(&c->reserved);
	c->books = map_new();
	c->holdings = map_new();
	c->hosts = host_uses_new();
	c->quotas = quotas_new(memory_factor);
	c->budgets = budgets_new();
	c->texts = texts_new();
	if (c->books == NULL || c->holdings == NULL || c->hosts == NULL || c->quotas == NULL || c->budgets == NULL ||
	    c->texts == NULL)
		return NULL;
	return HM_STEAL(c);
}

static void drop(struct cluster *c, struct holding *h);

void cluster_free(struct cluster *c)
{
	void *value;

	if (c == NULL)
		return;
	for (size_t at = 0; c->holdings != NULL && map_next(c->holdings, &at, NULL, &value);)
		drop(c, value);
	host_uses_free(c->hosts);
	for (size_t at = 0; c->books != NULL && map_next(c->books, &at, NULL, &value);)
		node_book_free(value);
	map_free(c->holdings);
	map_free(c->books);
	quotas_free(c->quotas);
	budgets_free(c->budgets);
	texts_free(c->texts);
	free(c->scratch);
	free(c);
}

struct texts *cluster_texts(struct cluster *c)
{
	return c->texts;
}

struct quotas *cluster_quotas(struct cluster *c)
{
	return c->quotas;
}

struct budgets *cluster_budgets(struct cluster *c)
{
	return c->budgets;
}

/* ---- nodes */

static struct node_book *open_book(struct cluster *c, const char *name)
{
	struct node_book *b = map_get(c->books, name);

	if (b != NULL)
		return b;
	b = node_book_new(name);
	if (b == NULL || map_put(c->books, name, b, NULL) < 0) {
		node_book_free(b);
		return NULL;
	}
	return b;
}

/* Where nobody needs it any more; NULL is none. */
static void close_book(struct cluster *c, struct node_book *b)
{
	if (b == NULL || b->state != NULL || b->holding_count > 0 || b->host_users > 0)
		return;
	map_remove(c->books, b->name);
	node_book_free(b);
}

static void charge(struct holding *h)
{
	struct quota_amount now = holding_amount(h, h->unreadable ? node_book_largest_card(h->node) : 0);

	quota_space_add(h->space,
			(struct quota_amount) { now.memory_mib - h->charged.memory_mib, now.cores - h->charged.cores });
	h->charged = now;
}

static void note_most(struct cluster_extremes *x, const struct node_state *n)
{
	for (size_t i = 0; i < n->count; i++) {
		x->most_memory_mib = HM_MAX(x->most_memory_mib, n->cards[i].memory_mib);
		x->most_cores = HM_MAX(x->most_cores, n->cards[i].cores);
		x->any_mig |= n->cards[i].mig;
	}
	x->most_cards = HM_MAX(x->most_cards, n->count);
}

static int set_state(struct cluster *c, struct node_book *b, struct node_state *take_node, struct hm_err *e)
{
	int err = node_book_set_state(b, take_node, e);

	if (err < 0)
		return err;
	c->least_known = false;
	if (b->state != NULL)
		note_most(&c->extremes, b->state);
	LIST_FOR_EACH (&b->holdings, at) {
		struct holding *h = HM_CONTAINER(at, struct holding, of_node);
		if (h->unreadable)
			charge(h);
	}
	return 0;
}

int cluster_put_node(struct cluster *c, struct node_state *take_node, struct hm_err *e)
{
	struct node_book *b = open_book(c, take_node->name);
	int err;

	if (b == NULL) {
		err = hm_err_set(e, HM_ENOMEM, "node %s: out of memory", take_node->name);
		node_state_free(take_node);
		return err;
	}
	err = set_state(c, b, take_node, e);
	if (err < 0)
		close_book(c, b);
	return err;
}

void cluster_remove_node(struct cluster *c, const char *name)
{
	struct node_book *b = map_get(c->books, name);

	if (b == NULL || b->state == NULL)
		return;
	CHECK(set_state(c, b, NULL, NULL) == 0);
	close_book(c, b);
}

void cluster_cordon_node(struct cluster *c, const char *name, const char *text)
{
	struct node_book *b = map_get(c->books, name);

	if (b != NULL && b->state != NULL)
		node_state_cordon(b->state, text);
}

const struct node_state *cluster_node(const struct cluster *c, const char *name)
{
	const struct node_book *b = map_get(c->books, name);

	return b != NULL ? b->state : NULL;
}

/* ---- CPU and memory */

void cluster_set_host(struct cluster *c, const char *name, struct host_amount all)
{
	struct node_book *b = map_get(c->books, name);

	if (b != NULL)
		node_book_set_host(b, all);
}

static int take_host(struct cluster *c, const char *uid, const char *node, struct host_amount amount, bool promised,
		     struct hm_err *e)
{
	struct node_book *b = open_book(c, node), *left;
	int err;

	if (b == NULL)
		return hm_err_set(e, HM_ENOMEM, "node %s: out of memory", node);
	err = host_uses_take(c->hosts, uid, &(struct host_use) { b, amount, promised }, &left, e);
	close_book(c, err < 0 ? b : left);
	return err;
}

int cluster_take_host(struct cluster *c, const char *uid, const char *node, struct host_amount has, struct hm_err *e)
{
	return take_host(c, uid, node, has, false, e);
}

/* ---- holdings */

/* Out of its node and namespace; the map still has it. */
static void drop(struct cluster *c, struct holding *h)
{
	struct node_book *b = h->node;

	node_book_remove(b, h);
	close_book(c, b);
	quota_space_add(h->space, (struct quota_amount) { -h->charged.memory_mib, -h->charged.cores });
	quotas_close(c->quotas, h->space);
	link_remove(&h->of_reserved);
	holding_free(h);
}

static void set_hold_state(struct cluster *c, struct holding *h, enum hold_state state)
{
	h->state = state;
	link_remove(&h->of_reserved);
	if (state == HOLD_RESERVED)
		link_append(&c->reserved, &h->of_reserved);
}

/* Into its node and namespace; beside what the pod held before, which is dropped afterwards. */
static int enter(struct cluster *c, struct holding *h, const struct hold *from, struct hm_err *e)
{
	struct node_book *b = open_book(c, from->node);
	int err;

	if (b == NULL)
		return hm_err_set(e, HM_ENOMEM, "node %s: out of memory", from->node);
	h->space = quotas_open(c->quotas, from->name_space);
	if (h->space == NULL) {
		close_book(c, b);
		return hm_err_set(e, HM_ENOMEM, "namespace %s: out of memory", from->name_space);
	}
	err = node_book_add(b, h, from->shares, e);
	if (err < 0) {
		quotas_close(c->quotas, h->space);
		close_book(c, b);
		return err;
	}
	charge(h);
	set_hold_state(c, h, h->state);
	return 0;
}

static bool is_promise(const struct holding *h)
{
	return h->state == HOLD_RESERVED || h->state == HOLD_BINDING;
}

int cluster_may_place(const struct cluster *c, const char *uid, struct hm_err *e)
{
	const struct holding *h = map_get(c->holdings, uid);

	if (h == NULL || h->state == HOLD_RESERVED)
		return 0;
	return hm_err_set(e, HM_EEXIST, "pod %s/%s is %s node %s", quota_space_name(h->space), h->name,
			  h->state == HOLD_BINDING ? "being bound to" : "bound to", h->node->name);
}

int cluster_hold(struct cluster *c, const struct hold *from, struct hm_err *e)
{
	struct holding *old = map_get(c->holdings, from->uid);
	struct holding *h;
	int err = from->state == HOLD_RESERVED ? cluster_may_place(c, from->uid, e) : 0;

	if (err == 0)
		err = holding_new(from, &h, e);
	if (err < 0)
		return err;
	h->told = !is_promise(h);
	err = enter(c, h, from, e);
	if (err < 0) {
		holding_free(h);
		return err;
	}
	if (map_put(c->holdings, from->uid, h, NULL) < 0) {
		drop(c, h);
		return hm_err_set(e, HM_ENOMEM, "pod %s/%s: out of memory", from->name_space, from->name);
	}
	if (old != NULL)
		drop(c, old);
	return 0;
}

int cluster_amend(struct cluster *c, const char *uid, bool terminating, const char *labels, struct hm_err *e)
{
	struct holding *h = map_get(c->holdings, uid);
	struct pod_labels *now;

	if (h == NULL || is_promise(h))
		return 0;
	if (pod_labels_new(labels, &now) < 0)
		return hm_err_set(e, HM_ENOMEM, "pod %s/%s: out of memory", quota_space_name(h->space), h->name);
	free(h->labels);
	h->labels = now;
	set_hold_state(c, h, terminating ? HOLD_TERMINATING : HOLD_BOUND);
	return 0;
}

int cluster_reserve(struct cluster *c, const struct pod_ask *ask, const char *node, const struct grant *grant,
		    uint64_t expires_ms, struct hm_err *e)
{
	const struct node_state *n = cluster_node(c, node);
	int err;

	if (n == NULL)
		return hm_err_set(e, HM_ENOTFOUND, "node %s is not there", node);
	if (!array_reserve(&c->scratch, &c->scratch_cap, grant->count, sizeof c->scratch[0]))
		return hm_err_set(e, HM_ENOMEM, "pod %s/%s: out of memory", ask->name_space, ask->name);
	for (size_t i = 0; i < grant->count; i++) {
		const struct card_share *s = &grant->shares[i];
		c->scratch[i] = (struct hold_share) {
			.container = s->container,
			.uuid = n->cards[s->card].uuid,
			.memory_mib = s->memory_mib,
			.cores = s->cores,
			.profile = s->profile == NO_PROFILE ? NULL : n->profiles[s->profile].name,
			.at = s->at,
		};
	}
	err = cluster_hold(c,
			   &(struct hold) {
				   .uid = ask->uid,
				   .name_space = ask->name_space,
				   .name = ask->name,
				   .node = node,
				   .state = HOLD_RESERVED,
				   .expires_ms = expires_ms,
				   .priority = ask->priority,
				   .asks = ask->containers,
				   .ask_count = ask->count,
				   .shares = c->scratch,
				   .share_count = grant->count,
			   },
			   e);
	if (err == 0)
		err = take_host(c, ask->uid, node, (struct host_amount) { ask->cpu_milli, ask->host_mib }, true, e);
	if (err == -HM_ENOMEM)
		cluster_roll_back(c, ask->uid);
	return err;
}

int cluster_confirm(struct cluster *c, const char *uid, const char *node, struct hm_err *e)
{
	struct holding *h = map_get(c->holdings, uid);
	int err = cluster_may_place(c, uid, e);

	if (err < 0)
		return err;
	if (h == NULL || strcmp(h->node->name, node) != 0)
		return hm_err_set(e, HM_ENOTFOUND, "nothing is reserved on node %s for pod %s", node, uid);
	set_hold_state(c, h, HOLD_BINDING);
	return 0;
}

void cluster_bound(struct cluster *c, const char *uid)
{
	struct holding *h = map_get(c->holdings, uid);

	if (h == NULL || !is_promise(h))
		return;
	set_hold_state(c, h, HOLD_BOUND);
	h->bound_in = c->lists;
}

/* A promise. */
static void take_back(struct cluster *c, struct holding *h)
{
	map_remove(c->holdings, h->uid);
	close_book(c, host_uses_give(c->hosts, h->uid, true));
	drop(c, h);
}

void cluster_roll_back(struct cluster *c, const char *uid)
{
	struct holding *h = map_get(c->holdings, uid);

	if (h != NULL && is_promise(h))
		take_back(c, h);
}

void cluster_seen(struct cluster *c, const char *uid)
{
	struct holding *h = map_get(c->holdings, uid);

	if (h == NULL)
		return;
	h->told = !is_promise(h);
	if (h->state == HOLD_RESERVED)
		take_back(c, h);
}

void cluster_release(struct cluster *c, const char *uid)
{
	struct holding *h = map_remove(c->holdings, uid);

	close_book(c, host_uses_give(c->hosts, uid, false));
	if (h != NULL)
		drop(c, h);
}

void cluster_list_begins(struct cluster *c)
{
	c->lists++;
}

size_t cluster_list_ended(struct cluster *c)
{
	size_t n = 0, at = 0;
	void *value;

	while (map_next(c->holdings, &at, NULL, &value)) {
		struct holding *h = value;
		if (is_promise(h) || h->told || h->bound_in == c->lists)
			continue;
		cluster_release(c, h->uid);
		n++;
	}
	return n;
}

size_t cluster_expire(struct cluster *c, uint64_t now_ms)
{
	size_t n = 0;

	LIST_FOR_EACH (&c->reserved, at) {
		struct holding *h = HM_CONTAINER(at, struct holding, of_reserved);
		if (h->expires_ms > now_ms)
			continue;
		take_back(c, h);
		n++;
	}
	return n;
}

uint64_t cluster_next_expiry_ms(const struct cluster *c)
{
	uint64_t next = UINT64_MAX;

	LIST_FOR_EACH (&c->reserved, at)
		next = HM_MIN(next, HM_CONTAINER(at, struct holding, of_reserved)->expires_ms);
	return next;
}

/* ---- for a question */

static struct holding *own(struct cluster *c, const struct holding *h)
{
	struct holding *it = map_get(c->holdings, h->uid);

	CHECK(it == h);
	return it;
}

void cluster_lift(struct cluster *c, const struct holding *h)
{
	node_book_lift(h->node, own(c, h));
	quota_space_add(h->space, (struct quota_amount) { -h->charged.memory_mib, -h->charged.cores });
}

void cluster_put_down(struct cluster *c, const struct holding *h)
{
	node_book_put_down(h->node, own(c, h));
	quota_space_add(h->space, h->charged);
}
