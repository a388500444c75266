#include "sched/simulate/advise.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/macros.h"

enum { CARD_HOLDERS = 4 /* of a card that may be cleared */, LET_IN_MOVES = 2 };

struct search {
	struct scene *scene;
	struct placer *placer;
	const struct advise_pod *pods;
	size_t count;
	bool *moved; /* owned */
};

/* A few pods, and where they would go. */
struct trial {
	size_t pods[ADVISE_MAX_MOVES];
	struct advise_move moves[ADVISE_MAX_MOVES];
	size_t count;
};

static bool may_move(const struct search *s, size_t pod)
{
	const struct hold *h = s->pods[pod].hold;

	return h->state == HOLD_BOUND && !h->unreadable && h->share_count > 0 && !s->moved[pod];
}

/* ---- trying out: pods are lifted, go elsewhere, and are put back */

static void lift(struct search *s, const struct trial *t)
{
	for (size_t i = 0; i < t->count; i++)
		cluster_release(s->scene->cluster, s->pods[t->pods[i]].pod.ask->uid);
}

static int put_back(struct search *s, const struct trial *t, struct hm_err *e)
{
	int rc = 0;

	lift(s, t);
	for (size_t i = 0; i < t->count && rc == 0; i++) {
		const struct advise_pod *p = &s->pods[t->pods[i]];

		rc = cluster_hold(s->scene->cluster, p->hold, e);
		if (rc == 0)
			rc = cluster_take_host(s->scene->cluster, p->pod.ask->uid, p->hold->node,
					       (struct host_amount) { p->pod.ask->cpu_milli, p->pod.ask->host_mib }, e);
	}
	return rc;
}

/* 1: all found a place, and are there; 0: one did not. */
static int send(struct search *s, struct trial *t, struct hm_err *e)
{
	for (size_t i = 0; i < t->count; i++) {
		struct place_result r;
		int rc = scene_place(s->scene, s->placer, &s->pods[t->pods[i]].pod, &r, e);

		if (rc <= 0)
			return rc == -HM_EINVAL ? 0 : rc; /* a wish that cannot be read */
		t->moves[i] =
			(struct advise_move) { t->pods[i], r.node->name,
					       r.grant->count > 0 ? r.node->cards[r.grant->shares[0].card].uuid : "" };
	}
	return 1;
}

static void keep(struct search *s, const struct trial *t, struct advise_plan *out)
{
	for (size_t i = 0; i < t->count; i++) {
		s->moved[t->pods[i]] = true;
		out->moves[out->count++] = t->moves[i];
	}
}

static int64_t empty_cards(const struct search *s)
{
	return scene_sum(s->scene).empty_cards;
}

/* ---- whole cards */

static bool is_on(const struct hold *h, const char *node, const char *uuid)
{
	if (strcmp(h->node, node) != 0)
		return false;
	for (size_t i = 0; i < h->share_count; i++)
		if (strcmp(h->shares[i].uuid, uuid) == 0)
			return true;
	return false;
}

/* All who hold something of the card; false where they are too many, or one may not move. */
static bool holders_of(const struct search *s, const char *node, const char *uuid, size_t most, struct trial *out)
{
	out->count = 0;
	for (size_t i = 0; i < s->count; i++) {
		if (!is_on(s->pods[i].hold, node, uuid))
			continue;
		if (out->count == HM_MIN(most, (size_t)CARD_HOLDERS) || !may_move(s, i))
			return false;
		out->pods[out->count++] = i;
	}
	return out->count > 0;
}

/* The other cards stay as they are. */
static void cordon(struct search *s, const struct node_state *n, size_t card, bool on)
{
	hm_auto_str list = { 0 };

	for (size_t i = 0; i < n->count; i++)
		if (i == card ? on : n->cards[i].cordoned)
			str_addf(&list, "%s,", n->cards[i].uuid);
	cluster_cordon_node(s->scene->cluster, n->name, str_text(&list));
}

/* *gain: whole cards more than now, had the card's pods to go elsewhere; 0 where they cannot. They are gone then, if
 * `stay`, else as they were. */
static int clear_card(struct search *s, const struct node_state *n, size_t card, struct trial *t, bool stay,
		      int64_t *gain, struct hm_err *e)
{
	int64_t before = empty_cards(s);
	int rc;

	lift(s, t);
	cordon(s, n, card, true);
	rc = send(s, t, e);
	cordon(s, n, card, false);
	*gain = rc == 1 ? empty_cards(s) - before : 0;
	if (rc < 0)
		return rc;
	return stay && rc == 1 ? 0 : put_back(s, t, e);
}

struct best {
	const struct node_state *node; /* NULL: none */
	size_t card;
	struct trial trial;
	int64_t gain;
};

static int look_for_card(struct search *s, size_t moves, struct best *best, struct hm_err *e)
{
	for (size_t i = 0; i < s->scene->node_count; i++) {
		const struct node_state *n = s->scene->nodes[i];

		for (size_t card = 0; card < n->count; card++) {
			struct trial t;
			int64_t gain;
			int rc;

			if (n->used[card].slots == 0 || n->cards[card].cordoned ||
			    !holders_of(s, n->name, n->cards[card].uuid, moves, &t))
				continue;
			rc = clear_card(s, n, card, &t, false, &gain, e);
			if (rc != 0)
				return rc;
			if (gain > 0 &&
			    (best->node == NULL || gain * (int64_t)best->trial.count > best->gain * (int64_t)t.count))
				*best = (struct best) { n, card, t, gain };
		}
	}
	return 0;
}

static int put_all_back(struct search *s, const struct advise_plan *plan, struct hm_err *e)
{
	struct trial all = { .count = plan->count };

	for (size_t i = 0; i < plan->count; i++)
		all.pods[i] = plan->moves[i].pod;
	return put_back(s, &all, e);
}

static int search_init(struct search *s, struct hm_err *e)
{
	s->moved = calloc(s->count + 1, sizeof *s->moved);
	return s->moved == NULL ? hm_err_set(e, HM_ENOMEM, "pods: no memory") : 0;
}

int advise_free_cards(struct scene *s, struct placer *p, const struct advise_pod *pods, size_t count, size_t moves,
		      struct advise_plan *out, struct hm_err *e)
{
	struct search search = { s, p, pods, count, NULL };
	int rc = search_init(&search, e);

	moves = HM_MIN(moves, (size_t)ADVISE_MAX_MOVES);
	*out = (struct advise_plan) { .empty_before = empty_cards(&search) };
	while (rc == 0 && out->count < moves) {
		struct best best = { 0 };
		int64_t gain;

		rc = look_for_card(&search, moves - out->count, &best, e);
		if (rc != 0 || best.node == NULL)
			break;
		rc = clear_card(&search, best.node, best.card, &best.trial, true, &gain, e);
		if (rc == 0)
			keep(&search, &best.trial, out);
	}
	out->empty_after = empty_cards(&search);
	if (rc == 0)
		rc = put_all_back(&search, out, e);
	free(search.moved);
	return rc;
}

/* ---- a pod that waits */

/* 1: it gets in where the lifted ones were, and they find a place; all as it was afterwards. */
static int try_in_place_of(struct search *s, const char *node, const struct scene_pod *waiting, struct trial *t,
			   struct hm_err *e)
{
	struct place_result r;
	int rc, back;

	lift(s, t);
	rc = scene_find(s->scene, s->placer, waiting, node, &r, e);
	if (rc == 1)
		rc = cluster_reserve(s->scene->cluster, waiting->ask, node, r.grant, UINT64_MAX, e) == 0 ? 1 : -e->code;
	if (rc == 1)
		rc = send(s, t, e);
	cluster_release(s->scene->cluster, waiting->ask->uid);
	back = put_back(s, t, e);
	return back != 0 ? back : rc;
}

/* What would be interrupted: less is better. */
static int64_t size_of(const struct search *s, const struct trial *t)
{
	int64_t sum = 0;

	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < s->pods[t->pods[i]].hold->share_count; k++)
			sum += s->pods[t->pods[i]].hold->shares[k].memory_mib;
	return sum;
}

static int consider(struct search *s, const char *node, const struct scene_pod *waiting, struct trial *t,
		    struct trial *best, const char **where, struct hm_err *e)
{
	int rc;

	if (*where != NULL && size_of(s, t) >= size_of(s, best))
		return 0;
	rc = try_in_place_of(s, node, waiting, t, e);
	if (rc == 1) {
		*best = *t;
		*where = node;
	}
	return rc < 0 ? rc : 0;
}

/* Sets of `moves` pods of a node, one or two. */
static int look_on_node(struct search *s, const char *node, const struct scene_pod *waiting, size_t moves,
			struct trial *best, const char **where, struct hm_err *e)
{
	int rc = 0;

	for (size_t a = 0; a < s->count && rc == 0; a++) {
		struct trial t = { .pods = { a }, .count = moves };

		if (!may_move(s, a) || strcmp(s->pods[a].hold->node, node) != 0)
			continue;
		if (moves == 1)
			rc = consider(s, node, waiting, &t, best, where, e);
		for (size_t b = a + 1; moves == 2 && b < s->count && rc == 0; b++) {
			if (!may_move(s, b) || strcmp(s->pods[b].hold->node, node) != 0)
				continue;
			t.pods[1] = b;
			rc = consider(s, node, waiting, &t, best, where, e);
		}
	}
	return rc;
}

static int fits_already(struct search *s, const struct scene_pod *waiting, const char **where, struct hm_err *e)
{
	struct place_result r;
	int rc = scene_find(s->scene, s->placer, waiting, NULL, &r, e);

	*where = rc == 1 ? r.node->name : NULL;
	return rc < 0 ? rc : 0;
}

int advise_let_in(struct scene *s, struct placer *p, const struct advise_pod *pods, size_t count,
		  const struct scene_pod *waiting, struct advise_plan *out, struct hm_err *e)
{
	struct search search = { s, p, pods, count, NULL };
	struct trial best = { 0 };
	const char *where = NULL;
	int rc = search_init(&search, e);

	*out = (struct advise_plan) { .empty_before = empty_cards(&search) };
	if (rc == 0)
		rc = fits_already(&search, waiting, &where, e);
	for (size_t moves = 1; where == NULL && moves <= LET_IN_MOVES && rc == 0; moves++)
		for (size_t i = 0; i < s->node_count && rc == 0; i++)
			rc = look_on_node(&search, s->nodes[i]->name, waiting, moves, &best, &where, e);
	out->node = where;
	out->empty_after = out->empty_before;
	if (rc == 0)
		keep(&search, &best, out);
	free(search.moved);
	return rc;
}
