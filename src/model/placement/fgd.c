#include "model/placement/fgd.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/check.h"
#include "core/fnv.h"
#include "core/macros.h"
#include "core/splitmix.h"
#include "model/placement/mix_mark.h"
#include "model/placement/recall.h"

enum {
	BLOCK_BITS = 6, /* sets where a node's measures are, some thirty a pod: other nodes have the same ones */
	SET_BITS = 17,  /* 5,000 nodes, with the pods that come just now on any of their cards */
	RECENT = 256,   /* pods that are known again */
	/* CPU and memory of nodes are counted in steps, rounded down: a real node has its own odd amounts, and would
	 * share its measure with no other one, nor with itself an instant later. */
	CPU_STEP_MILLI = 100,
	HOST_STEP_MIB = 256,
	MAX_KINDS = 256, /* then all are made anew: a node may write another type each time */
};

struct kind {       /* of a card */
	char *type; /* owned */
	int32_t card_mib;
	struct mix_table *table;
};

/* A node as it is before the pod, and what of it the cache is asked by. */
struct subject {
	const struct node_state *node; /* NULL: none */
	size_t kind;
	uint64_t cards_key;
	/* Of the host with the pod on it: the same for every card. */
	bool after_known;
	struct host_amount after;
	uint64_t after_key;
};

struct fgd {
	struct node_order order;
	const struct pod_mix *mix;
	struct pod_mix *learns;  /* NULL: nothing */
	uint64_t recent[RECENT]; /* their UIDs' hashes, a ring by hash */
	struct fgd_weights weights;
	bool blind;
	struct mix_mark learned; /* when the tables were made */
	struct kind *kinds;
	size_t kind_count, kind_cap;
	const struct pod_ask *ask;
	struct subject at;
	uint16_t *cards; /* of the node in `at` */
	size_t cards_cap;
	struct card_hold *holds;
	size_t holds_cap;
	enum ask_kind *kinds_of; /* the pod's containers */
	size_t kinds_of_cap;
	uint64_t age; /* of the tables: a part of every key */
	struct recall *cache;
};

struct fgd_weights fgd_default_weights(void)
{
	return (struct fgd_weights) {
		.fragment = 700,
		.copies = 345,
		.balance = 577,
		.empty = -10714,
		.step = 100,
		.blind_step = 500,
	};
}

static void begin(void *arg, const struct pod_ask *ask);
static void came(void *arg, const struct pod_ask *ask);
static double card_rank(void *arg, const struct node_state *n, size_t card, const struct card_use *used,
			const struct card_ask *ask);
static double node_rank(void *arg, const struct node_state *n, const struct pod_ask *ask, const struct grant *g);
static uint64_t order_state(void *arg);
static uint64_t order_host(void *arg, const struct node_state *n);

struct fgd *fgd_new(const struct pod_mix *mix, const struct fgd_weights *weights)
{
	hm_auto(fgd) *f = calloc(1, sizeof *f);

	if (f == NULL)
		return NULL;
	f->cache = recall_new(SET_BITS);
	if (f->cache == NULL)
		return NULL;
	f->order = (struct node_order) { .name = "fgd",
					 .begin = begin,
					 .came = came,
					 .after = node_rank,
					 .state = order_state,
					 .host = order_host,
					 .card_rank = card_rank,
					 .arg = f };
	f->mix = mix;
	f->weights = *weights;
	return HM_STEAL(f);
}

const struct node_order *fgd_order(struct fgd *f)
{
	return &f->order;
}

/* Nothing that was said, here or by whoever remembers it, is said again for that. */
static void forget_answers(struct fgd *f)
{
	f->age = splitmix_scramble(f->age + 1);
}

static void forget_tables(struct fgd *f)
{
	for (size_t i = 0; i < f->kind_count; i++) {
		mix_table_free(f->kinds[i].table);
		free(f->kinds[i].type);
	}
	f->kind_count = 0;
	forget_answers(f);
}

void fgd_free(struct fgd *f)
{
	if (f == NULL)
		return;
	forget_tables(f);
	free(f->kinds);
	free(f->cards);
	free(f->holds);
	free(f->kinds_of);
	recall_free(f->cache);
	free(f);
}

void fgd_learn(struct fgd *f, struct pod_mix *mix)
{
	f->learns = mix;
}

void fgd_be_blind(struct fgd *f)
{
	f->blind = true;
	forget_answers(f);
}

static bool came_before(struct fgd *f, const char *uid)
{
	uint64_t hash = fnv_add(FNV_BEGIN, uid, strlen(uid));
	uint64_t *place = &f->recent[hash % RECENT];

	if (*place == hash)
		return true;
	*place = hash;
	return false;
}

void fgd_see(struct fgd *f, const struct pod_ask *ask)
{
	struct mix_shape s = mix_shape_of(ask);
	int rc = f->learns == NULL || came_before(f, ask->uid) ? 0 : pod_mix_see(f->learns, &s, NULL);

	(void)rc; /* a pod less in the mix where memory is short: nothing is lost */
}

void fgd_sample(struct fgd *f, const struct pod_ask *ask)
{
	struct mix_shape s = mix_shape_of(ask);
	int rc = f->learns == NULL ? 0 : pod_mix_sample(f->learns, &s, NULL);

	(void)rc;
}

void fgd_begin(struct fgd *f, const struct pod_ask *ask)
{
	f->ask = ask;
	f->at.node = NULL;
	if (mix_mark_is_old(&f->learned, f->mix)) {
		forget_tables(f);
		mix_mark_set(&f->learned, f->mix);
	}
}

static void begin(void *arg, const struct pod_ask *ask)
{
	fgd_begin(arg, ask);
}

static void came(void *arg, const struct pod_ask *ask)
{
	fgd_see(arg, ask);
}

/* Asked for each card of each node: 32 bits are divided in half the time of 64. */
static int64_t milli_of(int64_t free, int64_t all)
{
	if (free >= 0 && free <= UINT32_MAX / CARD_MILLI)
		return (uint32_t)free * (uint32_t)CARD_MILLI / (uint32_t)all;
	return free * CARD_MILLI / all;
}

uint16_t card_free_milli(const struct node_card *card, const struct card_use *used)
{
	int64_t milli, cores;

	if (!card->nvidia || !card->healthy || card->cordoned || card->blocked > 0 || card->mig ||
	    card->memory_mib <= 0 || used->slots >= card->count)
		return 0;
	milli = milli_of(card->memory_mib - used->memory_mib, card->memory_mib);
	if (card->cores > 0) {
		cores = milli_of(card->cores - used->cores, card->cores);
		milli = HM_MIN(milli, cores);
	}
	milli = HM_MAX(milli, 0);
	return (uint16_t)HM_MIN(milli, used->slots > 0 ? CARD_MILLI - 1 : CARD_MILLI);
}

/* Cards in any order give the same sum, and one card's part can be exchanged: what is added up must look random. */
static uint64_t card_key(uint16_t milli)
{
	return milli == 0 ? 0 : splitmix_scramble(SPLITMIX_STEP * (uint64_t)(milli + 1u));
}

static uint64_t host_key(const struct node_room *room, size_t kind)
{
	uint64_t key = splitmix_scramble((uint64_t)room->cpu_milli + 0x632be59bd9b4e019u);

	return splitmix_scramble(key ^ ((uint64_t)room->host_mib * 0xd6e8feb86659fd93u)) +
	       splitmix_scramble(~(uint64_t)kind);
}

/* Those of a node and host lie side by side: it is asked about card by card. */
static struct recall_set *cache_set(struct fgd *f, uint64_t host, uint64_t block)
{
	enum { BLOCK_SHIFT = 64 - SET_BITS + BLOCK_BITS };

	return recall_set(f->cache,
			  (host + f->age) >> BLOCK_SHIFT << BLOCK_SHIFT | block << (BLOCK_SHIFT - BLOCK_BITS));
}

/* Of the node at hand, with such a host and such cards. */
static int64_t measure(struct fgd *f, uint64_t host, uint64_t cards, const struct node_room *room)
{
	uint64_t key = (host + cards + f->age) | 1; /* never that of an empty place */
	struct recall_set *set = cache_set(f, host, cards >> (64 - BLOCK_BITS));
	const int64_t *known = recall_find(set, key);
	int64_t made;

	if (known != NULL)
		return *known;
	made = mix_table_measure(f->kinds[f->at.kind].table, room, &f->weights);
	recall_keep(set, key, made);
	return made;
}

static int add_kind(struct fgd *f, const char *type, int32_t card_mib, struct hm_err *e)
{
	struct kind k = { strdup(type), card_mib, mix_table_new(f->mix, type, card_mib) };

	if (k.type != NULL && k.table != NULL && HM_PUSH(f->kinds, f->kind_count, f->kind_cap, k))
		return 0;
	mix_table_free(k.table);
	free(k.type);
	return hm_err_set(e, HM_ENOMEM, "the mix of pods: no memory");
}

/* A node's cards are of one kind; where they are not, the first counts for all. */
static int find_kind(struct fgd *f, const struct node_state *n, size_t *out, struct hm_err *e)
{
	const char *type = n->count == 0 ? "" : n->cards[0].type;
	int32_t card_mib = n->count == 0 ? 0 : n->cards[0].memory_mib;

	for (*out = 0; *out < f->kind_count; ++*out)
		if (f->kinds[*out].card_mib == card_mib && strcmp(f->kinds[*out].type, type) == 0)
			return 0;
	if (f->kind_count == MAX_KINDS)
		forget_tables(f);
	*out = f->kind_count;
	return add_kind(f, type, card_mib, e);
}

/* What is left of a host's amount, in whole steps; unknown stays unknown. */
static int64_t left(int64_t amount, int64_t taken, int64_t step)
{
	return amount < 0 ? amount : HM_MAX(amount - taken, 0) / step * step;
}

static bool sees_host(const struct fgd *f, const struct node_state *n)
{
	return !f->blind && n->cpu_milli >= 0;
}

/* The node's, as f->cards are, with so much of the host taken. */
static struct node_room room_of(const struct fgd *f, const struct node_state *n, int64_t cpu_milli, int64_t host_mib)
{
	struct node_room room = { f->cards, n->count, -1, -1 };

	if (f->blind)
		return room;
	room.cpu_milli = left(n->cpu_milli, cpu_milli, CPU_STEP_MILLI);
	room.host_mib = left(n->host_mib, host_mib, HOST_STEP_MIB);
	return room;
}

/* How fragmented the node at hand is, without the pod. */
static int64_t measure_now(struct fgd *f)
{
	struct node_room room = room_of(f, f->at.node, 0, 0);

	return measure(f, host_key(&room, f->at.kind), f->at.cards_key, &room);
}

static struct node_room room_after(struct fgd *f)
{
	struct subject *at = &f->at;
	struct node_room room;

	if (!at->after_known) {
		room = room_of(f, at->node, f->ask->cpu_milli, f->ask->host_mib);
		at->after = (struct host_amount) { room.cpu_milli, room.host_mib };
		at->after_key = host_key(&room, at->kind);
		at->after_known = true;
		for (uint64_t i = 0; i < 1 << BLOCK_BITS; i++)
			__builtin_prefetch(cache_set(f, at->after_key, i));
	}
	return (struct node_room) { f->cards, at->node->count, at->after.cpu_milli, at->after.mib };
}

/* Makes *n the node at hand. */
static int look_at(struct fgd *f, const struct node_state *n, struct hm_err *e)
{
	uint64_t key = 0;
	size_t kind;
	int rc;

	if (f->at.node == n)
		return 0;
	f->at.node = NULL;
	rc = find_kind(f, n, &kind, e);
	if (rc != 0)
		return rc;
	if (!array_reserve(&f->cards, &f->cards_cap, n->count, sizeof *f->cards))
		return hm_err_set(e, HM_ENOMEM, "cards of a node: no memory");
	for (size_t i = 0; i < n->count; i++) {
		f->cards[i] = card_free_milli(&n->cards[i], &n->used[i]);
		key += card_key(f->cards[i]);
	}
	f->at = (struct subject) { .node = n, .kind = kind, .cards_key = key };
	return 0;
}

/* Free milli of the card with `more` on it. */
static uint16_t milli_with(const struct node_card *card, const struct card_use *used, const struct card_use *more)
{
	struct card_use sum = card_use_sum(*used, *more);

	return card_free_milli(card, &sum);
}

/* False: the card will be refused, and what is on it is all one. Slices of a cut card are another matter. */
static bool may_take(const struct node_card *c, const struct card_use *used, const struct card_use *more)
{
	struct card_use sum = card_use_sum(*used, *more);

	return c->mig || (sum.memory_mib <= c->memory_mib && sum.cores <= c->cores && sum.slots <= c->count);
}

/* Memory is short: all are alike, and nothing of it is to be remembered. */
static double not_known(struct fgd *f)
{
	forget_answers(f);
	return 0;
}

static double card_rank(void *arg, const struct node_state *n, size_t card, const struct card_use *used,
			const struct card_ask *ask)
{
	struct card_use more = { 1, card_ask_memory(ask, n->cards[card].memory_mib), ask->cores };
	struct fgd *f = arg;
	struct node_room room;
	uint16_t before, after;
	int64_t then;

	if (!may_take(&n->cards[card], used, &more))
		return 0;
	if (look_at(f, n, NULL) != 0)
		return not_known(f);
	before = f->cards[card];
	after = milli_with(&n->cards[card], used, &more);
	room = room_after(f);
	f->cards[card] = after;
	then = measure(f, f->at.after_key, f->at.cards_key - card_key(before) + card_key(after), &room);
	f->cards[card] = before;
	return (double)then;
}

/* What the pod has of each card, into f->holds. */
static int sum_grant(struct fgd *f, const struct grant *grant, size_t *count, struct hm_err *e)
{
	if (!array_reserve(&f->holds, &f->holds_cap, grant->count, sizeof *f->holds) ||
	    !array_reserve(&f->kinds_of, &f->kinds_of_cap, f->ask->count, sizeof *f->kinds_of))
		return hm_err_set(e, HM_ENOMEM, "cards of a pod: no memory");
	for (size_t i = 0; i < f->ask->count; i++)
		f->kinds_of[i] = f->ask->containers[i].kind;
	*count = pod_use_by_card(grant->shares, grant->count, f->kinds_of, f->ask->count, f->holds);
	return 0;
}

/* To the nearest multiple of `step` milli. */
static int64_t round_to(int64_t x, int32_t step_milli)
{
	int64_t step = step_milli * (int64_t)MEASURE_MILLI;

	if (step <= 0)
		return x;
	return x >= 0 ? (x + step / 2) / step * step : -((step / 2 - x) / step) * step;
}

int fgd_node_cost(struct fgd *f, const struct node_state *n, const struct grant *grant, int64_t *out, struct hm_err *e)
{
	struct node_room room;
	int64_t before;
	uint64_t key;
	size_t count = 0;
	int rc = look_at(f, n, e);

	if (rc == 0)
		rc = sum_grant(f, grant, &count, e);
	if (rc != 0)
		return rc;
	before = measure_now(f);
	room = room_after(f);
	key = f->at.cards_key;
	for (size_t i = 0; i < count; i++) {
		size_t card = f->holds[i].card;

		key -= card_key(f->cards[card]);
		f->cards[card] = milli_with(&n->cards[card], &n->used[card], &f->holds[i].use);
		key += card_key(f->cards[card]);
	}
	*out = measure(f, f->at.after_key, key, &room) - before;
	*out = round_to(*out, sees_host(f, n) ? f->weights.step : f->weights.blind_step);
	f->at.node = NULL; /* its cards are those after the pod */
	return 0;
}

static double node_rank(void *arg, const struct node_state *n, const struct pod_ask *ask, const struct grant *g)
{
	struct fgd *f = arg;
	int64_t cost;

	CHECK(ask == f->ask);
	return fgd_node_cost(f, n, g, &cost, NULL) == 0 ? (double)cost : not_known(f);
}

static uint64_t order_state(void *arg)
{
	const struct fgd *f = arg;

	return f->age;
}

static uint64_t order_host(void *arg, const struct node_state *n)
{
	const struct fgd *f = arg;
	struct node_room now = room_of(f, n, 0, 0), then = room_of(f, n, f->ask->cpu_milli, f->ask->host_mib);

	return host_key(&now, 0) - splitmix_scramble(host_key(&then, 0));
}

int fgd_node_measure(struct fgd *f, const struct node_state *n, int64_t *out, struct hm_err *e)
{
	int rc = look_at(f, n, e);

	if (rc == 0)
		*out = measure_now(f);
	return rc;
}
