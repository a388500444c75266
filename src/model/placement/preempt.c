#include "model/placement/preempt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { MOST_TRIES = 20000 };

struct preempt {
	struct fitter *fitter;
	struct cluster *cluster;
	const struct pod_ask *ask;
	unsigned tries;
	struct grant grant;
	/* Of the node under way: all who hold something there; of them those that are lifted in any case, and then
	 * those that may have to go. */
	const struct holding **all, **lifted;
	size_t all_cap, lifted_cap, going, count;
};

struct preempt *preempt_new(void)
{
	struct preempt *p = calloc(1, sizeof *p);

	if (p == NULL)
		return NULL;
	p->fitter = fitter_new();
	if (p->fitter != NULL)
		return p;
	free(p);
	return NULL;
}

void preempt_free(struct preempt *p)
{
	if (p == NULL)
		return;
	fitter_free(p->fitter);
	grant_fini(&p->grant);
	free(p->all);
	free(p->lifted);
	free(p);
}

int preempt_read(struct preempt *p, struct cluster *c, const struct pod_ask *ask, const char *card_policy,
		 struct hm_err *e)
{
	p->cluster = c;
	p->ask = ask;
	p->tries = 0;
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
	const struct holding *x = *(const struct holding *const *)a, *y = *(const struct holding *const *)b;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	if (memory_of(x) != memory_of(y))
		return memory_of(x) < memory_of(y) ? -1 : 1;
	return strcmp(x->uid, y->uid);
}

static void lift(struct preempt *p, const struct holding *h)
{
	cluster_lift(p->cluster, h);
	p->lifted[p->count++] = h;
}

static int lift_all(struct preempt *p, const char *node, const char *const *going, size_t going_count, struct hm_err *e)
{
	size_t n = cluster_holdings_on(p->cluster, node, NULL, 0);

	p->going = p->count = 0;
	if (!array_reserve(&p->all, &p->all_cap, n, sizeof p->all[0]) ||
	    !array_reserve(&p->lifted, &p->lifted_cap, n, sizeof p->lifted[0]))
		return hm_err_set(e, HM_ENOMEM, "holders of node %s", node);
	(void)cluster_holdings_on(p->cluster, node, p->all, n);
	for (size_t i = 0; i < n; i++)
		if (is_going(p->all[i], going, going_count))
			lift(p, p->all[i]);
	p->going = p->count;
	for (size_t i = 0; i < n; i++)
		if (!is_going(p->all[i], going, going_count) && may_go(p, p->all[i]))
			lift(p, p->all[i]);
	return 0;
}

static void put_down_all(struct preempt *p)
{
	for (size_t i = 0; i < p->count; i++)
		cluster_put_down(p->cluster, p->lifted[i]);
}

/* Who can stay is put down, and no more in the list. */
static int spare(struct preempt *p, const struct node_state *n, struct hm_err *e)
{
	size_t kept = p->going, all = p->count;
	int fit = 1;

	if (all > p->going)
		qsort(&p->lifted[p->going], all - p->going, sizeof p->lifted[0], by_worth);
	for (size_t i = p->going; i < all; i++) {
		const struct holding *h = p->lifted[i];

		cluster_put_down(p->cluster, h);
		if (fit >= 0)
			fit = fits(p, n, e);
		if (fit > 0)
			continue;
		cluster_lift(p->cluster, h);
		p->lifted[kept++] = h;
	}
	p->count = kept;
	return fit < 0 ? fit : 0;
}

int preempt_node(struct preempt *p, const char *node, const char *const *going, size_t going_count,
		 const struct holding *const **victims, size_t *count, struct hm_err *e)
{
	const struct node_state *n = cluster_node(p->cluster, node);
	int fit;

	*count = 0;
	if (n == NULL || p->tries >= MOST_TRIES)
		return 0;
	if (lift_all(p, node, going, going_count, e) < 0)
		return -e->code;
	fit = fits(p, n, e);
	if (fit > 0 && spare(p, n, e) < 0)
		fit = -HM_ENOMEM;
	put_down_all(p);
	if (fit <= 0)
		return fit;
	*victims = p->lifted + p->going;
	*count = p->count - p->going;
	return *count > 0 || going_count > 0;
}
