#include "model/placement/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"
#include "core/splitmix.h"
#include "model/placement/recall.h"

/* Smaller is better; among equal ones the first by name. The request's own copy of the name, where there is one: they
 * lie side by side, the nodes' do not, and most of the order is made of comparing them. */
struct candidate {
	double key;
	const struct node_state *node;
	const char *name;
};

struct placer {
	const char *node_policy, *card_policy;
	const struct node_order *own; /* placer_set_policy's */
	struct fitter *fitter;
	struct candidate *heap;
	size_t count, cap;
	struct refused_node *refused;
	size_t refused_count, refused_cap;
	struct grant grant, best_grant;
	/* What a policy that looks at every node thought of those that fit. NULL where memory was short, or no such
	 * policy is there. */
	struct recall *ranks;
	uint64_t ask_print; /* of the pod, its quota and the policy; 0: nothing is remembered of it */
};
enum { RANKS_BITS = 17 }; /* sets: 5,000 nodes, with a hundred kinds of pods */

struct placer *placer_new(const char *node_policy, const char *card_policy)
{
	hm_auto(placer) *p = calloc(1, sizeof *p);

	if (p == NULL)
		return NULL;
	p->node_policy = node_policy;
	p->card_policy = card_policy;
	p->fitter = fitter_new();
	return p->fitter == NULL ? NULL : HM_STEAL(p);
}

void placer_free(struct placer *p)
{
	if (p == NULL)
		return;
	fitter_free(p->fitter);
	free(p->heap);
	free(p->refused);
	grant_fini(&p->grant);
	grant_fini(&p->best_grant);
	recall_free(p->ranks);
	free(p);
}

void placer_set_policy(struct placer *p, const struct node_order *order)
{
	p->own = order;
	if (p->ranks == NULL && order->state != NULL)
		p->ranks = recall_new(RANKS_BITS);
}

/* ---- the order of candidates: a heap, since mostly one of the first few fits */

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	return strcmp(a->name, b->name) < 0;
}

static void sift_down(struct candidate *heap, size_t count, size_t at)
{
	struct candidate moved = heap[at];

	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && is_better(&heap[child + 1], &heap[child]))
			child++;
		if (!is_better(&heap[child], &moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

static const struct node_state *take_best(struct placer *p)
{
	const struct node_state *n = p->heap[0].node;

	p->heap[0] = p->heap[--p->count];
	if (p->count > 0)
		sift_down(p->heap, p->count, 0);
	return n;
}

/* ---- candidates */

static bool add_candidate(struct placer *p, const struct node_state *n, const char *name,
			  const struct node_order *order)
{
	double key = order->after == NULL ? order->before(n) : 0;

	return HM_PUSH(p->heap, p->count, p->cap, (struct candidate) { key, n, name });
}

static bool refuse(struct placer *p, const char *name, const struct refusal *why)
{
	struct refused_node *r;

	if (!array_reserve(&p->refused, &p->refused_cap, p->refused_count + 1, sizeof p->refused[0]))
		return false;
	r = &p->refused[p->refused_count++];
	r->name = name;
	r->unregistered = why == NULL;
	r->why = why == NULL ? (struct refusal) { .unresolvable = true } : *why;
	return true;
}

static bool collect(struct placer *p, struct cluster *c, const struct place_request *r, const struct node_order *order)
{
	const struct node_state *n;

	for (size_t at = 0; r->names == NULL && cluster_next_node(c, &at, &n);)
		if (n->count > 0 && !add_candidate(p, n, n->name, order))
			return false;
	for (size_t i = 0; r->names != NULL && i < r->count; i++) {
		n = cluster_node(c, r->names[i]);
		if (n == NULL && r->nodes != NULL)
			n = r->nodes[i];
		if (n != NULL && n->count > 0 ? !add_candidate(p, n, r->names[i], order)
					      : !refuse(p, r->names[i], NULL))
			return false;
	}
	return true;
}

/* ---- the choice */

static int no_memory(const struct place_request *r, struct hm_err *e)
{
	return hm_err_set(e, HM_ENOMEM, "pod %s/%s: out of memory", r->ask->name_space, r->ask->name);
}

/* 1, 0 or negative, as fit_pod; what does not fit is noted. */
static int try_node(struct placer *p, const struct place_request *r, const struct node_state *n, struct hm_err *e)
{
	struct refusal why;
	int fits = fit_pod(p->fitter, n, &p->grant, &why, e);

	if (fits == 0 && !refuse(p, n->name, &why))
		return no_memory(r, e);
	return fits;
}

static void keep(struct placer *p, const struct node_state *n, struct place_result *out)
{
	struct grant was = p->best_grant;

	p->best_grant = p->grant;
	p->grant = was;
	out->node = n;
}

/* Nodes lie far apart in memory, and waiting for them is most of what refusing one costs: their cards are asked for
 * before their turn. */
static void prefetch_cards(const struct node_state *n)
{
	enum { LINE = 64, CARD_BYTES = 12 * LINE, USED_BYTES = 4 * LINE };

	for (size_t at = 0; at < CARD_BYTES; at += LINE)
		__builtin_prefetch((const char *)n->cards + at);
	for (size_t at = 0; at < USED_BYTES; at += LINE)
		__builtin_prefetch((const char *)n->used + at);
}

/* The next node is at the heap's top; the one after it is one of the two below. */
static void prefetch_heap(const struct placer *p)
{
	for (size_t i = 1; i < 3 && i < p->count; i++)
		__builtin_prefetch(p->heap[i].node);
	if (p->count > 0)
		prefetch_cards(p->heap[0].node);
}

/* The same, where they are taken in their order; the one at `at` is next. */
static void prefetch_next(const struct placer *p, size_t at)
{
	enum { AHEAD = 4 };

	if (at + AHEAD < p->count)
		__builtin_prefetch(p->heap[at + AHEAD].node);
	if (at < p->count)
		prefetch_cards(p->heap[at].node);
}

/* The first node that fits, with the best cards of all ways even where too many nodes were looked at for that. */
static int grant_first(struct placer *p, const struct node_state *n, struct place_result *out, struct hm_err *e)
{
	struct refusal why;
	int fits = 1;

	if (fitter_ran_short(p->fitter)) {
		fitter_refill(p->fitter);
		fits = fit_pod(p->fitter, n, &p->grant, &why, e);
	}
	if (fits > 0)
		keep(p, n, out);
	return fits;
}

static int choose_first(struct placer *p, const struct place_request *r, struct place_result *out, struct hm_err *e)
{
	for (size_t i = p->count / 2; i-- > 0;)
		sift_down(p->heap, p->count, i);
	while (p->count > 0) {
		const struct node_state *n = take_best(p);
		int fits;

		prefetch_heap(p);
		fits = try_node(p, r, n, e);
		if (fits != 0)
			return fits < 0 ? fits : grant_first(p, n, out, e);
	}
	return 0;
}

/* ---- what was thought of a node for such a pod before */

static uint64_t rank_key(const struct placer *p, const struct node_order *order, const struct node_state *n)
{
	return p->ask_print == 0 ? 0 : splitmix_scramble(n->print + p->ask_print + order->host(order->arg, n)) | 1;
}

static bool recall_rank(const struct placer *p, uint64_t key, double *out)
{
	const int64_t *bits = key == 0 ? NULL : recall_find(recall_set(p->ranks, key), key);

	if (bits != NULL)
		memcpy(out, bits, sizeof *out);
	return bits != NULL;
}

static void keep_rank(struct placer *p, uint64_t key, double rank)
{
	int64_t bits;

	memcpy(&bits, &rank, sizeof bits);
	if (key != 0)
		recall_keep(recall_set(p->ranks, key), key, bits);
}

/* 1, 0 or negative, as fit_pod. */
static int rank_node(struct placer *p, const struct place_request *r, const struct node_order *order,
		     struct candidate *at, struct hm_err *e)
{
	uint64_t key = rank_key(p, order, at->node);
	int fits;

	if (recall_rank(p, key, &at->key))
		return 1;
	fits = try_node(p, r, at->node, e);
	if (fits <= 0)
		return fits;
	at->key = order->after(order->arg, at->node, r->ask, &p->grant);
	keep_rank(p, key, at->key);
	return 1;
}

static int rank_all(struct placer *p, const struct place_request *r, const struct node_order *order,
		    const struct node_state **out, struct hm_err *e)
{
	struct candidate best = { 0 };

	for (size_t i = 0; i < p->count; i++) {
		struct candidate at = p->heap[i];
		int fits;

		prefetch_next(p, i + 1);
		fits = rank_node(p, r, order, &at, e);
		if (fits < 0)
			return fits;
		if (fits > 0 && (best.node == NULL || is_better(&at, &best)))
			best = at;
	}
	*out = best.node;
	return best.node != NULL;
}

/* What is remembered only says who is best: whether the pod fits there, and on which cards, is seen to now. */
static int choose_best(struct placer *p, const struct place_request *r, const struct node_order *order,
		       struct place_result *out, struct hm_err *e)
{
	const size_t refused = p->refused_count;
	const struct node_state *n;
	int fits = rank_all(p, r, order, &n, e);

	if (fits <= 0)
		return fits;
	fitter_refill(p->fitter);
	fits = try_node(p, r, n, e);
	if (fits > 0) {
		keep(p, n, out);
	} else if (fits == 0 && p->ask_print != 0) { /* one key for two: as if nothing were known */
		p->ask_print = 0;
		p->refused_count = refused;
		fits = choose_best(p, r, order, out, e);
	}
	return fits;
}

/* ---- the request */

static const struct node_order *order_of(const struct placer *p, const struct pod_ask *ask)
{
	const char *policy = ask->wishes.node_policy != NULL ? ask->wishes.node_policy : p->node_policy;

	if (p->own != NULL && policy != NULL && strcmp(policy, p->own->name) == 0)
		return p->own;
	return node_order_find(policy);
}

/* Room for all that the pod may ever count for is as good as any. */
static struct quota_amount room_that_counts(struct cluster *c, const struct place_request *r, struct quota_amount room)
{
	static const struct quota_amount any = { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT };
	const struct cluster_extremes most = cluster_extremes(c);

	/* An instance is more than was asked for; nodes that are only named here may have larger cards. */
	if (most.any_mig || r->nodes != NULL)
		return room;
	return quota_fits(room, quota_of_asks(r->ask->containers, r->ask->count, most.most_memory_mib)) ? any : room;
}

static uint64_t print_of(const struct place_request *r, struct quota_amount room, uint64_t order_state)
{
	uint64_t print = splitmix_scramble(pod_ask_print(r->ask) + order_state);

	print = splitmix_scramble(print ^ (uint64_t)room.memory_mib);
	return splitmix_scramble(print ^ (uint64_t)room.cores) | 1;
}

static int read_pod(struct placer *p, struct cluster *c, const struct place_request *r, const struct node_order *order,
		    struct hm_err *e)
{
	const struct pod_ask *ask = r->ask;
	const struct node_order *own = p->own;
	const char *policy = ask->wishes.card_policy != NULL ? ask->wishes.card_policy : p->card_policy;
	int err = fitter_read(p->fitter, ask, p->card_policy, e);
	struct quota_amount room;

	p->ask_print = 0;
	if (err < 0)
		return err;
	room = quotas_room(cluster_quotas(c), ask->name_space);
	fitter_set_quota(p->fitter, room);
	if (own == NULL)
		return 0;
	if (own->begin != NULL)
		own->begin(own->arg, ask);
	if (own->came != NULL && r->nodes == NULL)
		own->came(own->arg, ask);
	if (own->card_rank != NULL && policy != NULL && strcmp(policy, own->name) == 0)
		fitter_set_rank(p->fitter, own->card_rank, own->arg);
	if (order == own && own->state != NULL && p->ranks != NULL && !fitter_may_run_short(p->fitter))
		p->ask_print = print_of(r, room_that_counts(c, r, room), own->state(own->arg));
	return 0;
}

static int choose(struct placer *p, struct cluster *c, const struct place_request *r, struct place_result *out,
		  struct hm_err *e)
{
	const struct node_order *order = order_of(p, r->ask);
	int err = read_pod(p, c, r, order, e);

	if (err < 0)
		return err;
	if (!collect(p, c, r, order))
		return no_memory(r, e);
	err = order->after == NULL ? choose_first(p, r, out, e) : choose_best(p, r, order, out, e);
	if (err < 0)
		return err;
	out->grant = &p->best_grant;
	out->score = out->node != NULL ? node_score(out->node) : 0;
	out->refused = p->refused;
	out->refused_count = p->refused_count;
	return err;
}

int place_pod(struct placer *p, struct cluster *c, const struct place_request *r, struct place_result *out,
	      struct hm_err *e)
{
	const struct holding *own = r->nodes != NULL ? cluster_find(c, r->ask->uid) : NULL;
	int err = r->nodes == NULL ? cluster_may_place(c, r->ask->uid, e) : 0;

	*out = (struct place_result) { 0 };
	p->count = p->refused_count = 0;
	if (err < 0)
		return err;
	if (r->nodes == NULL)
		cluster_roll_back(c, r->ask->uid);
	if (own != NULL)
		cluster_lift(c, own);
	err = choose(p, c, r, out, e);
	if (own != NULL)
		cluster_put_down(c, own);
	return err;
}
