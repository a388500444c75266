#include "model/placement/fit_never.h"

#include "model/placement/mig_place.h"

/* Of pods with more containers only the one refused is looked at. */
enum { MOST_CONTAINERS = 64, NO_INIT = -1 };

struct empty_node {
	const struct node_state *n;
	struct wishes *wishes;
	const struct pod_ask *pod;
};

/* ---- cards */

/* Whatever container it is for. */
static bool takes(const struct empty_node *v, const struct node_card *c)
{
	return c->nvidia && c->healthy && !c->cordoned && c->count != 0 && wishes_take_kind(v->wishes, c) &&
	       wishes_take_uuid(v->wishes, c);
}

static bool is_enough(const struct empty_node *v, size_t card, const struct card_ask *ask)
{
	const struct node_card *c = &v->n->cards[card];

	return c->memory_mib >= fit_memory_on(v->n, card, ask) && c->cores >= (int32_t)ask->cores;
}

/* ---- one container */

/* How many shares of the card the container can have, at least. */
static size_t most_ever(const struct empty_node *v, const struct card_ask *ask, size_t card)
{
	const struct node_card *c = &v->n->cards[card];

	if (!is_enough(v, card, ask) || !takes(v, c))
		return 0;
	return c->mig ? mig_most(v->n, card, fit_memory_on(v->n, card, ask)) : 1;
}

static bool never_alone(const struct empty_node *v, const struct card_ask *ask)
{
	const struct node_state *n = v->n;

	for (size_t i = 0; i < n->count; i++) {
		size_t most = 0;

		for (size_t k = i; k < n->count && most < ask->count; k++)
			if (!v->wishes->numa_bind || n->cards[k].numa == n->cards[i].numa)
				most += most_ever(v, ask, k);
		if (most >= ask->count)
			return false;
		if (!v->wishes->numa_bind)
			return true;
	}
	return true;
}

/* ---- containers that run together, without MIG: sums, so that true is certain whoever chooses first */

struct together {
	struct card_use asked, all;         /* asked.slots: what is taken of all.slots */
	int64_t fewest;                     /* shares that a card takes; a share of all its cores leaves none of them */
	int64_t least_mib[MOST_CONTAINERS]; /* of each container that runs, on the cards that are enough for it */
};

/* With the init container, or with none: those that the pod runs in the end. */
static bool runs(const struct pod_ask *pod, size_t i, int init)
{
	const struct card_ask *ask = &pod->containers[i];

	if (ask->count == 0)
		return false;
	if (init == NO_INIT)
		return ask->kind != ASK_INIT;
	return i == (size_t)init || (i < (size_t)init && ask->kind != ASK_INIT);
}

static void add_card(const struct empty_node *v, int init, size_t card, struct together *t)
{
	const struct node_card *c = &v->n->cards[card];
	int64_t shares = v->wishes->order.mutex ? 1 : c->count, least_mib = INT64_MAX, least_cores = INT64_MAX;

	for (size_t i = 0; i < v->pod->count; i++) {
		const struct card_ask *ask = &v->pod->containers[i];
		int64_t mib;

		if (!runs(v->pod, i, init) || !is_enough(v, card, ask))
			continue;
		mib = fit_memory_on(v->n, card, ask);
		t->least_mib[i] = HM_MIN(t->least_mib[i], mib);
		least_mib = HM_MIN(least_mib, mib);
		least_cores = HM_MIN(least_cores, (int64_t)ask->cores);
	}
	if (least_mib == INT64_MAX) /* it is for none of them */
		return;
	if (least_mib > 0)
		shares = HM_MIN(shares, c->memory_mib / least_mib);
	if (least_cores > 0)
		shares = HM_MIN(shares, c->cores / least_cores);
	t->all = card_use_sum(t->all, (struct card_use) { shares, c->memory_mib, c->cores });
	t->fewest = HM_MIN(t->fewest, c->cores == 100 ? shares : 1);
}

static void add_container(const struct empty_node *v, size_t i, struct together *t)
{
	const struct card_ask *ask = &v->pod->containers[i];
	const int64_t count = HM_MIN((int64_t)ask->count, (int64_t)v->n->count); /* more have been seen to */

	t->asked = card_use_sum(t->asked, (struct card_use) { count * (ask->cores == 100 ? t->fewest : 1),
							      count * t->least_mib[i], count * ask->cores });
}

static bool never_together(const struct empty_node *v, int init)
{
	struct together t;
	size_t running = 0;

	for (size_t i = 0; i < v->pod->count; i++) {
		running += runs(v->pod, i, init);
		t.least_mib[i] = INT32_MAX;
	}
	if (running < 2)
		return false;
	t.asked = t.all = (struct card_use) { 0 };
	t.fewest = INT32_MAX;
	for (size_t card = 0; card < v->n->count; card++) {
		if (!takes(v, &v->n->cards[card]))
			continue;
		if (v->n->cards[card].mig)
			return false;
		add_card(v, init, card, &t);
	}
	for (size_t i = 0; i < v->pod->count; i++)
		if (runs(v->pod, i, init))
			add_container(v, i, &t);
	return t.asked.slots > t.all.slots || t.asked.memory_mib > t.all.memory_mib || t.asked.cores > t.all.cores;
}

/* ---- the pod */

bool fit_never(const struct node_state *n, struct wishes *wishes, const struct pod_ask *ask, size_t refused)
{
	const struct empty_node v = { n, wishes, ask };

	if (never_alone(&v, &ask->containers[refused]))
		return true;
	if (ask->count > MOST_CONTAINERS)
		return false;
	for (size_t i = 0; i < ask->count; i++)
		if (i != refused && ask->containers[i].count > 0 && never_alone(&v, &ask->containers[i]))
			return true;
	return never_together(&v, NO_INIT) ||
	       (ask->containers[refused].kind == ASK_INIT && never_together(&v, (int)refused));
}
