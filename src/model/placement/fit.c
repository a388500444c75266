#include "model/placement/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"
#include "model/placement/card_order.h"
#include "model/placement/fit_never.h"
#include "model/placement/fit_wishes.h"
#include "model/placement/mig_place.h"
#include "model/placement/pod_sum.h"
#include "model/placement/topology_pick.h"

enum { ACCEPTED = -1, MOST_WAYS = 100000 };

/* What the pod's own sidecars and app containers have of a card. */
struct own_use {
	struct card_use use;
	uint64_t busy;      /* MIG slices */
	uint64_t here_busy; /* those of the container under way */
};

struct fitter {
	const struct pod_ask *ask;
	struct wishes wishes;
	struct quota_amount room;
	card_rank_fn *rank;
	void *rank_arg;
	uint64_t ways; /* to choose joined cards, that may be looked at yet */

	/* Of the node under way: */
	const struct node_state *n;
	struct own_use *own; /* of each card */
	size_t own_cap;
	/* Candidates in the order that they are tried: for an init container, and for all that run together. */
	struct card_rank *alone, *together;
	size_t alone_cap, together_cap, candidates;
	bool any_mig;
	struct pod_sum pod; /* of all cards, for the quota: the containers so far */
};

/* A container that looks for its cards. */
struct walk {
	const struct card_ask *ask;
	uint32_t container;
	struct grant *out;
	struct refusal *why;
	size_t first; /* its shares in the grant begin here */
	size_t from;  /* those of the NUMA group under way, or of all cards */
	uint32_t left;
	bool grouped; /* numa is set */
	int32_t numa;
	bool picked; /* topology: the best set so far stands at first, its sum is best */
	int64_t best;
	struct card_use found; /* for the quota: what the group has */
};

struct fitter *fitter_new(void)
{
	return calloc(1, sizeof(struct fitter));
}

void fitter_free(struct fitter *f)
{
	if (f == NULL)
		return;
	wishes_fini(&f->wishes);
	free(f->own);
	free(f->alone);
	free(f->together);
	free(f);
}

void grant_fini(struct grant *g)
{
	free(g->shares);
	*g = (struct grant) { 0 };
}

int fitter_read(struct fitter *f, const struct pod_ask *ask, const char *card_policy, struct hm_err *e)
{
	f->ask = ask;
	f->room = (struct quota_amount) { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT };
	f->rank = NULL;
	f->ways = MOST_WAYS;
	return wishes_read(&ask->wishes, card_policy, &f->wishes, e);
}

void fitter_set_quota(struct fitter *f, struct quota_amount room)
{
	f->room = room;
}

bool fitter_may_run_short(const struct fitter *f)
{
	return f->wishes.order.topology;
}

bool fitter_ran_short(const struct fitter *f)
{
	return f->ways == 0;
}

void fitter_refill(struct fitter *f)
{
	f->ways = MOST_WAYS;
}

void fitter_set_rank(struct fitter *f, card_rank_fn *rank, void *arg)
{
	f->rank = rank;
	f->rank_arg = arg;
}

/* ---- amounts */

static struct card_use use_of_all(const struct card_share *s, size_t count)
{
	struct card_use sum = { 0 };

	for (size_t i = 0; i < count; i++)
		sum = card_use_sum(sum, card_share_use(&s[i]));
	return sum;
}

/* What others and the pod's containers that run at the same time have of the card. */
static struct card_use used_of(const struct fitter *f, size_t card)
{
	return card_use_sum(f->n->used[card], f->own[card].use);
}

/* May the pod count for this much more than what runs together so far? */
static bool quota_allows(const struct fitter *f, struct card_use more)
{
	struct card_use pod = pod_sum_with(&f->pod, more);

	return quota_fits(f->room, (struct quota_amount) { pod.memory_mib, pod.cores });
}

/* ---- one card */

/* The checks that HAMi makes once it is clear that the card is of the kind wanted, in its order. `charged` is what the
 * namespace pays: the whole instance, where `share` asks for a part of one. */
static int check_room(const struct fitter *f, const struct walk *w, const struct card_share *share,
		      const struct card_share *charged)
{
	const struct node_card *c = &f->n->cards[share->card];
	struct card_use used = used_of(f, share->card);

	if (c->count <= used.slots)
		return REASON_SLOTS;
	if (f->wishes.order.mutex && used.slots > 0)
		return REASON_EXCLUSIVE;
	if (!quota_allows(f, card_use_sum(w->found, card_share_use(charged))))
		return REASON_QUOTA;
	if (c->memory_mib - used.memory_mib < share->memory_mib)
		return REASON_MEMORY;
	if (c->cores - used.cores < share->cores)
		return REASON_CORES;
	if (c->cores == 100 && share->cores == 100 && used.slots > 0)
		return REASON_EXCLUSIVE;
	if (c->cores != 0 && used.cores == c->cores && share->cores == 0)
		return REASON_CORES_EXHAUSTED;
	return ACCEPTED;
}

/* The share becomes a whole instance. */
static bool place_on(const struct fitter *f, const struct walk *w, struct card_share *share)
{
	const struct own_use *own = &f->own[share->card];
	uint64_t busy = f->n->cards[share->card].busy | own->busy | own->here_busy;

	if (!mig_place(f->n, share->card, share->memory_mib, busy, w->out->shares, w->first, &share->profile,
		       &share->at))
		return false;
	share->memory_mib = f->n->profiles[share->profile].memory_mib;
	share->cores = f->n->profiles[share->profile].cores;
	return true;
}

static int keep(struct fitter *f, struct walk *w, const struct card_share *share, struct hm_err *e)
{
	if (!HM_PUSH(w->out->shares, w->out->count, w->out->cap, *share))
		return hm_err_set(e, HM_ENOMEM, "a pod's cards");
	f->own[share->card].here_busy |= mig_place_bits(share->at);
	/* Where all cards that would do are collected, the last one wanted is any of the rest. */
	if (!f->wishes.order.topology || w->left > 1)
		w->found = card_use_sum(w->found, card_share_use(share));
	if (w->left > 0)
		w->left--;
	return 0;
}

/* ---- groups of cards: all, or those of a NUMA node */

static void forget_places(struct fitter *f, const struct grant *g, size_t from)
{
	for (size_t i = from; i < g->count; i++)
		f->own[g->shares[i].card].here_busy = 0;
}

/* The group is complete: its best set is kept at the beginning, if it is better than what stands there. */
static int pick_from_group(struct fitter *f, struct walk *w, struct hm_err *e)
{
	struct grant *out = w->out;
	size_t want = w->ask->count, found = out->count - w->from;
	struct card_share *group;
	int64_t sum;

	if (!array_reserve(&out->shares, &out->cap, out->count + want, sizeof out->shares[0]))
		return hm_err_set(e, HM_ENOMEM, "a pod's cards");
	group = &out->shares[w->from];
	memcpy(&group[found], group, want * sizeof group[0]);
	sum = topology_pick(f->n, group, found, want, &f->ways);
	if (!quota_allows(f, use_of_all(group, want))) /* cards of different sizes: those found first do */
		memcpy(group, &group[found], want * sizeof group[0]);
	if (!w->picked || sum > w->best) {
		memmove(&out->shares[w->first], group, want * sizeof group[0]);
		w->best = sum;
	}
	w->picked = true;
	return 0;
}

/* Ends the group under way, if any; the next one starts with nothing. */
static int end_group(struct fitter *f, struct walk *w, struct hm_err *e)
{
	size_t found = w->out->count - w->from;

	if (f->wishes.order.topology && w->left == 0) {
		int err = pick_from_group(f, w, e);

		if (err < 0)
			return err;
	} else if (found > 0) {
		w->why->counts[REASON_NUMA] += (uint32_t)found;
	}
	forget_places(f, w->out, w->from);
	w->from = w->first + (w->picked ? w->ask->count : 0);
	w->out->count = w->from;
	w->left = w->ask->count;
	w->found = (struct card_use) { 0 };
	return 0;
}

/* ---- the walk */

/* The card's own qualities, up to where its NUMA node comes in. */
static int check_kind(struct fitter *f, const struct node_card *c)
{
	if (!c->healthy || c->blocked > 0)
		return REASON_NOT_HEALTHY;
	if (c->cordoned)
		return REASON_CORDONED;
	return wishes_take_kind(&f->wishes, c) ? ACCEPTED : REASON_TYPE;
}

/* Where the share is accepted, *out is what the container gets. */
static int check_uuid_and_room(struct fitter *f, struct walk *w, const struct card_share *share, struct card_share *out)
{
	const struct node_card *c = &f->n->cards[share->card];
	bool placed;
	int why;

	if (!wishes_take_uuid(&f->wishes, c))
		return REASON_UUID;
	/* Copied late: most cards are refused for what is asked of them. */
	if (!c->mig) {
		why = check_room(f, w, share, share);
		if (why == ACCEPTED)
			*out = *share;
		return why;
	}
	*out = *share;
	placed = place_on(f, w, out);
	why = check_room(f, w, share, out);
	return why == ACCEPTED && !placed ? REASON_MIG_PLACE : why;
}

/* Looks at a card until it gives no more; an instance of a MIG card does not use up the card. 1: all found. */
static int try_card(struct fitter *f, struct walk *w, uint32_t card, struct hm_err *e)
{
	const struct node_card *c = &f->n->cards[card];
	struct card_share share = {
		.container = w->container,
		.card = card,
		.memory_mib = fit_memory_on(f->n, card, w->ask),
		.cores = (int32_t)w->ask->cores,
		.profile = NO_PROFILE,
	}, got;
	int why = check_kind(f, c), err;

	if (why == ACCEPTED && f->wishes.numa_bind && (!w->grouped || w->numa != c->numa)) {
		err = end_group(f, w, e);
		if (err < 0)
			return err;
		w->grouped = true;
		w->numa = c->numa;
	}
	while (why == ACCEPTED) {
		why = check_uuid_and_room(f, w, &share, &got);
		if (why != ACCEPTED)
			break;
		err = keep(f, w, &got, e);
		if (err < 0)
			return err;
		if (w->left == 0 && !f->wishes.order.topology)
			return 1;
		if (!c->mig)
			return 0;
	}
	w->why->counts[why]++;
	return 0;
}

/* Has any card room for the memory? Of MIG cards it is not known so soon. */
static bool any_room(const struct fitter *f, const struct card_rank *cards, const struct card_ask *ask)
{
	for (size_t i = 0; i < f->candidates; i++) {
		const uint32_t card = cards[i].card;
		const struct node_card *c = &f->n->cards[card];

		if (c->mig || c->memory_mib - used_of(f, card).memory_mib >= fit_memory_on(f->n, card, ask))
			return true;
	}
	return false;
}

/* Cards in the order in which they are tried; any order where all will be refused. */
static struct card_rank *ranked(struct fitter *f, const struct card_ask *ask)
{
	struct card_rank *order = ask->kind == ASK_INIT ? f->alone : f->together;

	for (size_t i = 0, k = 0; ask->kind == ASK_INIT && i < f->n->count; i++)
		if (f->n->cards[i].nvidia)
			order[k++].card = (uint32_t)i;
	if (!any_room(f, order, ask))
		return order;
	for (size_t i = 0; i < f->candidates; i++) {
		struct card_rank *r = &order[i];
		const struct node_card *c = &f->n->cards[r->card];
		struct card_use used = used_of(f, r->card);

		r->index = c->index;
		r->numa = c->numa;
		r->slots = used.slots;
		r->fullness = card_fullness(c, &used, ask, &f->wishes.weights);
		r->rank = f->rank == NULL ? 0 : f->rank(f->rank_arg, f->n, r->card, &used, ask);
	}
	card_order_sort(&f->wishes.order, order, f->candidates);
	return order;
}

static int find_cards(struct fitter *f, struct walk *w, struct hm_err *e)
{
	const struct card_rank *order = ranked(f, w->ask);
	int done = 0;

	for (size_t i = f->candidates; i-- > 0 && done == 0;)
		done = try_card(f, w, order[i].card, e);
	if (done != 0 || !f->wishes.order.topology)
		return done;
	if (w->left == 0)
		done = end_group(f, w, e);
	forget_places(f, w->out, w->from);
	return done < 0 ? done : w->picked;
}

/* The container has its cards: they count for those after it. */
static void settle(struct fitter *f, const struct walk *w)
{
	const struct card_share *shares = &w->out->shares[w->first];

	forget_places(f, w->out, w->first);
	w->out->count = w->first + w->ask->count;
	for (uint32_t i = 0; i < w->ask->count; i++) {
		const struct card_share *s = &shares[i];
		struct own_use *own = &f->own[s->card];

		if (w->ask->kind == ASK_INIT)
			continue;
		own->use = card_use_sum(own->use, card_share_use(s));
		own->busy |= mig_place_bits(s->at);
	}
	pod_sum_add(&f->pod, w->ask->kind == ASK_INIT, use_of_all(shares, w->ask->count));
}

/* ---- a pod */

static int fit_container(struct fitter *f, uint32_t container, struct grant *out, struct refusal *why, struct hm_err *e)
{
	const struct card_ask *ask = &f->ask->containers[container];
	struct walk w = {
		.ask = ask,
		.container = container,
		.out = out,
		.why = why,
		.first = out->count,
		.from = out->count,
		.left = ask->count,
	};
	int done;

	*why = (struct refusal) { .cards = (uint32_t)f->candidates };
	if (ask->count > f->candidates && !(f->any_mig && f->wishes.takes_mig)) {
		why->too_few_cards = why->unresolvable = true;
		return 0;
	}
	done = find_cards(f, &w, e);
	if (done > 0) {
		settle(f, &w);
	} else if (done == 0) {
		why->counts[REASON_CARDS_TOO_FEW] = (uint32_t)(out->count - w.from);
		why->unresolvable = fit_never(f->n, &f->wishes, f->ask, container);
	}
	return done;
}

static bool start_node(struct fitter *f, const struct node_state *n)
{
	f->n = n;
	f->pod = (struct pod_sum) { 0 };
	f->candidates = 0;
	f->any_mig = false;
	if (n->count == 0)
		return true;
	if (!array_reserve(&f->own, &f->own_cap, n->count, sizeof f->own[0]) ||
	    !array_reserve(&f->alone, &f->alone_cap, n->count, sizeof f->alone[0]) ||
	    !array_reserve(&f->together, &f->together_cap, n->count, sizeof f->together[0]))
		return false;
	memset(f->own, 0, n->count * sizeof f->own[0]);
	for (size_t i = 0; i < n->count; i++)
		if (n->cards[i].nvidia) {
			f->together[f->candidates++].card = (uint32_t)i;
			f->any_mig |= n->cards[i].mig;
		}
	return true;
}

int fit_pod(struct fitter *f, const struct node_state *n, struct grant *out, struct refusal *why, struct hm_err *e)
{
	*why = (struct refusal) { 0 };
	out->count = 0;
	if (!start_node(f, n))
		return hm_err_set(e, HM_ENOMEM, "cards of a node");
	for (size_t i = 0; i < f->ask->count; i++) {
		int done = f->ask->containers[i].count == 0 ? 1 : fit_container(f, (uint32_t)i, out, why, e);

		if (done <= 0)
			return done;
	}
	return 1;
}
