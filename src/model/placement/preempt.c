#include "model/placement/preempt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/placement/node_book.h"

enum { MOST_TRIES = 20000, MOST_WORK = 2000000 };

struct preempt {
	struct fitter *fitter;
	struct cluster *cluster;
	const struct pod_ask *ask;
	unsigned tries;
	uint64_t work; /* budgets' when the pod was read */
	struct grant grant;
	/* Of those who hold something on the node under way: those that are lifted in any case, and then those that may
	 * have to go. */
	struct preempt_victim *lifted;
	size_t lifted_cap, going, count;
};

struct preempt *preempt_new(void)
{
	hm_auto(preempt) *p = calloc(1, sizeof *p);

	if (p == NULL)
		return NULL;
	p->fitter = fitter_new();
	return p->fitter == NULL ? NULL : HM_STEAL(p);
}

void preempt_free(struct preempt *p)
{
	if (p == NULL)
		return;
	fitter_free(p->fitter);
	grant_fini(&p->grant);
	free(p->lifted);
	free(p);
}

int preempt_read(struct preempt *p, struct cluster *c, const struct pod_ask *ask, const char *card_policy,
		 struct hm_err *e)
{
	p->cluster = c;
	p->ask = ask;
	p->tries = 0;
	p->work = budgets_work(cluster_budgets(c));
	return fitter_read(p->fitter, ask, card_policy, e);
}

static int fits(struct preempt *p, const struct node_state *n, struct hm_err *e)
{
	struct refusal why;

	p->tries++;
	fitter_set_quota(p->fitter, quotas_room(cluster_quotas(p->cluster), p->ask->name_space));
	return fit_pod(p->fitter, n, &p->grant, &why, e);
}

/* ---- who may go */

static bool is_going(const struct holding *h, const char *const *going, size_t count)
{
	if (h->state == HOLD_TERMINATING)
		return true;
	for (size_t i = 0; i < count; i++)
		if (strcmp(h->uid, going[i]) == 0)
			return true;
	return false;
}

/* Promises are nobody's to take: kube-scheduler knows no pod there yet. */
static bool may_go(const struct preempt *p, const struct holding *h)
{
	return h->state == HOLD_BOUND && h->priority < p->ask->priority;
}

static int64_t memory_of(const struct holding *h)
{
	return h->charged.memory_mib;
}

/* The order in which pods are spared. */
static int by_worth(const void *a, const void *b)
{
	const struct holding *x = ((const struct preempt_victim *)a)->holding;
	const struct holding *y = ((const struct preempt_victim *)b)->holding;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	if (memory_of(x) != memory_of(y))
		return memory_of(x) < memory_of(y) ? -1 : 1;
	return strcmp(x->uid, y->uid);
}

static int by_violation(const void *a, const void *b)
{
	bool x = ((const struct preempt_victim *)a)->violates, y = ((const struct preempt_victim *)b)->violates;

	return x != y ? (x ? -1 : 1) : by_worth(a, b);
}

static void lift(struct preempt *p, const struct holding *h)
{
	cluster_lift(p->cluster, h);
	p->lifted[p->count++] = (struct preempt_victim) { h, false };
}

static int lift_all(struct preempt *p, const struct node_book *b, const char *const *going, size_t going_count,
		    struct hm_err *e)
{
	p->going = p->count = 0;
	if (!array_reserve(&p->lifted, &p->lifted_cap, b->holding_count, sizeof p->lifted[0]))
		return hm_err_set(e, HM_ENOMEM, "holders of node %s", b->name);
	LIST_FOR_EACH (&b->holdings, at) {
		const struct holding *h = HM_CONTAINER(at, struct holding, of_node);

		if (is_going(h, going, going_count))
			lift(p, h);
	}
	p->going = p->count;
	LIST_FOR_EACH (&b->holdings, at) {
		const struct holding *h = HM_CONTAINER(at, struct holding, of_node);

		if (!is_going(h, going, going_count) && may_go(p, h))
			lift(p, h);
	}
	return 0;
}

static void put_down_all(struct preempt *p)
{
	for (size_t i = 0; i < p->count; i++)
		cluster_put_down(p->cluster, p->lifted[i].holding);
}

static void sort_victims(struct preempt *p, int (*order)(const void *a, const void *b))
{
	if (p->count > p->going)
		qsort(&p->lifted[p->going], p->count - p->going, sizeof p->lifted[0], order);
}

static bool takes_too_long(const struct preempt *p)
{
	return p->tries >= MOST_TRIES || budgets_work(cluster_budgets(p->cluster)) - p->work > MOST_WORK;
}

static bool take_budget(struct preempt *p, struct preempt_victim *v)
{
	struct budgets *budgets = cluster_budgets(p->cluster);
	const struct holding *h = v->holding;

	v->violates = budgets_take(budgets, cluster_holding_space(h), h->name, h->labels);
	return budgets_work(budgets) - p->work <= MOST_WORK;
}

/* Of those who may have to go, the most worthy first. Budgets are used up by those that go anyway (the API server has
 * counted those that are being deleted), then by the least worthy. False: that takes too long. */
static bool mark_violations(struct preempt *p)
{
	budgets_begin(cluster_budgets(p->cluster));
	for (size_t i = 0; i < p->going; i++)
		if (p->lifted[i].holding->state == HOLD_BOUND && !take_budget(p, &p->lifted[i]))
			return false;
	for (size_t i = p->count; i > p->going; i--)
		if (!take_budget(p, &p->lifted[i - 1]))
			return false;
	return true;
}

/* Who can stay is put down, and no more in the list. 1: the others are the victims; 0: too long. */
static int spare(struct preempt *p, const struct node_state *n, struct hm_err *e)
{
	size_t kept = p->going, all = p->count;
	int fit = 1;

	sort_victims(p, by_worth);
	if (!mark_violations(p))
		return 0;
	sort_victims(p, by_violation);
	for (size_t i = p->going; i < all; i++) {
		const struct preempt_victim v = p->lifted[i];

		cluster_put_down(p->cluster, v.holding);
		if (fit >= 0)
			fit = fits(p, n, e);
		if (fit > 0)
			continue;
		cluster_lift(p->cluster, v.holding);
		p->lifted[kept++] = v;
	}
	p->count = kept;
	sort_victims(p, by_worth);
	return fit < 0 ? fit : mark_violations(p);
}

int preempt_node(struct preempt *p, const char *node, const char *const *going, size_t going_count,
		 const struct preempt_victim **victims, size_t *count, struct hm_err *e)
{
	const struct node_book *b = cluster_book(p->cluster, node);
	const struct node_state *n = b != NULL ? b->state : NULL;
	int fit;

	*count = 0;
	if (n == NULL || takes_too_long(p))
		return 0;
	fit = lift_all(p, b, going, going_count, e);
	if (fit < 0)
		return fit;
	fit = fits(p, n, e);
	if (fit > 0)
		fit = spare(p, n, e);
	put_down_all(p);
	if (fit <= 0)
		return fit;
	*victims = p->lifted + p->going;
	*count = p->count - p->going;
	return *count > 0 || going_count > 0;
}
