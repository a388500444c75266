#include "model/placement/preempt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/placement/node_book.h"

enum { MOST_TRIES = 20000 };

struct preempt {
	struct fitter *fitter;
	struct cluster *cluster;
	const struct pod_ask *ask;
	unsigned tries;
	struct grant grant;
	/* Of those who hold something on the node under way: those that are lifted in any case, and then those that may
	 * have to go. */
	const struct holding **lifted;
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
	const struct node_book *b = cluster_book(p->cluster, node);
	const struct node_state *n = b != NULL ? b->state : NULL;
	int fit;

	*count = 0;
	if (n == NULL || p->tries >= MOST_TRIES)
		return 0;
	fit = lift_all(p, b, going, going_count, e);
	if (fit < 0)
		return fit;
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
