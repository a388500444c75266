#include "model_checker/oracle.h"

#include <string.h>

/* A pod's life as moments: in each, some of its containers run. One for each init container, with the sidecars before
 * it; the last with all sidecars and app containers. All of them may come again: when the pod's sandbox is lost. */
static bool runs(const struct w_pod *p, int container, int moment)
{
	enum w_kind kind = p->asks[container].kind;

	if (moment == p->count)
		return kind != W_INIT;
	return container == moment ? kind == W_INIT : kind == W_SIDECAR && container < moment;
}

static bool is_moment(const struct w_pod *p, int moment)
{
	return moment == p->count || p->asks[moment].kind == W_INIT;
}

static void most(struct o_use *a, struct o_use b)
{
	a->slots = b.slots > a->slots ? b.slots : a->slots;
	a->memory = b.memory > a->memory ? b.memory : a->memory;
	a->cores = b.cores > a->cores ? b.cores : a->cores;
}

static long long memory_of(const struct w_ask *a, int card_memory)
{
	return a->memory > 0 ? a->memory : (long long)card_memory * a->percent / 100;
}

/* Of one card (uuid), or of all (NULL). */
static struct o_use use_of_record(const struct w_pod *p, const char *uuid)
{
	struct o_use all = { 0 };

	for (int m = 0; m <= p->count; m++) {
		struct o_use now = { 0 };
		if (!is_moment(p, m))
			continue;
		for (int i = 0; i < p->held.count; i++) {
			const struct w_share *s = &p->held.shares[i];
			if (!runs(p, s->container, m) || (uuid != NULL && strcmp(uuid, s->uuid) != 0))
				continue;
			now.slots++;
			now.memory += s->memory;
			now.cores += s->cores;
		}
		most(&all, now);
	}
	return all;
}

/* On one card of so much memory, at most; with `whole`, of all the cards that it asks for. */
static struct o_use use_of_garbage(const struct w_pod *p, int card_memory, bool whole)
{
	struct o_use all = { 0 };

	for (int m = 0; m <= p->count; m++) {
		struct o_use now = { 0 };
		if (!is_moment(p, m))
			continue;
		for (int i = 0; i < p->count; i++) {
			const struct w_ask *a = &p->asks[i];
			long long times = whole ? a->count : a->count > 0;
			if (!runs(p, i, m))
				continue;
			now.slots += times;
			now.memory += times * memory_of(a, card_memory);
			now.cores += times * a->cores;
		}
		most(&all, now);
	}
	return all;
}

static void add_instances(const struct world *w, const struct w_pod *p, const struct w_card *c, struct o_card *out)
{
	const struct w_node *n = &w->nodes[p->held.node];

	for (int i = 0; i < p->held.count; i++) {
		const struct w_share *s = &p->held.shares[i];
		bool here = strcmp(s->uuid, c->uuid) == 0, there = false;
		for (int k = 0; k < W_CARDS; k++)
			there |= n->cards[k].present && strcmp(s->uuid, n->cards[k].uuid) == 0;
		if (here && c->cut && s->size > 0)
			out->busy |= ((1U << s->size) - 1) << s->start;
		else if (here && c->cut != (s->size > 0))
			out->blocked++;
		else if (!there && s->size > 0 && c->cut)
			out->blocked++;
	}
}

struct o_card oracle_card(const struct world *w, int node, int card, const struct w_pod *but)
{
	const struct w_card *c = &w->nodes[node].cards[card];
	struct o_card out = { 0 };

	for (int i = 0; i < W_PODS; i++) {
		const struct w_pod *p = &w->pods[i];
		struct o_use use;
		if (p == but || p->belief == W_FREE || p->held.node != node)
			continue;
		use = p->held.garbage ? use_of_garbage(p, c->memory, false) : use_of_record(p, c->uuid);
		out.use.slots += use.slots;
		out.use.memory += use.memory;
		out.use.cores += use.cores;
		if (!p->held.garbage)
			add_instances(w, p, c, &out);
		else if (c->cut && use.slots > 0)
			out.blocked++;
	}
	return out;
}

struct o_space oracle_space(const struct world *w, int space)
{
	struct o_space out = { 0 };

	for (int i = 0; i < W_PODS; i++) {
		const struct w_pod *p = &w->pods[i];
		struct o_use use;
		int largest = 0;
		if (p->belief == W_FREE || p->space != space)
			continue;
		for (int k = 0; k < W_CARDS; k++) {
			const struct w_card *c = &w->nodes[p->held.node].cards[k];
			if (w->nodes[p->held.node].present && c->present && c->memory > largest)
				largest = c->memory;
		}
		use = p->held.garbage ? use_of_garbage(p, largest, true) : use_of_record(p, NULL);
		out.memory += use.memory;
		out.cores += use.cores;
	}
	return out;
}

struct o_host oracle_host(const struct world *w, int node)
{
	struct o_host out = { 0 };

	for (int i = 0; i < W_PODS; i++) {
		const struct w_pod *p = &w->pods[i];
		struct o_host most = { 0 };
		int on = p->seen_on < 0 && p->belief != W_FREE ? p->held.node : p->seen_on;
		for (int m = 0; on == node && m <= p->count; m++) {
			struct o_host now = { 0 };
			for (int k = 0; k < p->count && is_moment(p, m); k++) {
				now.cpu_milli += runs(p, k, m) ? p->asks[k].cpu_milli : 0;
				now.mib += runs(p, k, m) ? p->asks[k].host_mib : 0;
			}
			most.cpu_milli = now.cpu_milli > most.cpu_milli ? now.cpu_milli : most.cpu_milli;
			most.mib = now.mib > most.mib ? now.mib : most.mib;
		}
		out.cpu_milli += most.cpu_milli;
		out.mib += most.mib;
	}
	return out;
}

/* ---- a promise */

static void check_card(struct world *w, const struct w_pod *p, const struct w_share *s)
{
	struct w_node *n = &w->nodes[p->held.node];
	const struct w_card *c = w_find_card(n, s->uuid);
	const struct w_ask *a = &p->asks[s->container];
	struct o_card others, all;

	if (!n->present || c == NULL || !c->present || !c->healthy || c->cordoned) {
		w_fail(w, "%s was given %s, which is not there, not well or cordoned", p->name, s->uuid);
		return;
	}
	others = oracle_card(w, p->held.node, (int)(c - n->cards), p);
	all = oracle_card(w, p->held.node, (int)(c - n->cards), NULL);
	/* Of a cut card it is slices that are sold. */
	if (all.use.slots > c->count || (!c->cut && (all.use.memory > c->memory || all.use.cores > c->cores)))
		w_fail(w, "%s is sold twice: %lld/%d slots, %lld/%d MiB, %lld/%d cores", c->uuid, all.use.slots,
		       c->count, all.use.memory, c->memory, all.use.cores, c->cores);
	if (others.blocked > 0)
		w_fail(w, "%s was given %s, of which is not known what is free", p->name, c->uuid);
	if (a->cores == 100 && c->cores == 100 && !c->cut && others.use.slots > 0)
		w_fail(w, "%s was given all of %s, which others share", p->name, c->uuid);
	if (!c->cut && (s->memory != memory_of(a, c->memory) || s->cores != a->cores))
		w_fail(w, "%s was given %d MiB and %d cores of %s, which is not what it asked for", p->name, s->memory,
		       s->cores, c->uuid);
	if (c->cut && (s->size == 0 || ((((1U << s->size) - 1) << s->start) & others.busy) != 0))
		w_fail(w, "%s was given slices of %s that are taken", p->name, c->uuid);
}

/* The shares of one container: as many as asked for, and none twice. */
static void check_container(struct world *w, const struct w_pod *p, int container)
{
	int count = 0;

	for (int i = 0; i < p->held.count; i++) {
		const struct w_share *a = &p->held.shares[i];
		if (a->container != container)
			continue;
		count++;
		for (int k = 0; k < i; k++) {
			const struct w_share *b = &p->held.shares[k];
			bool apart = a->size > 0 && (a->start >= b->start + b->size || b->start >= a->start + a->size);
			if (b->container == container && strcmp(a->uuid, b->uuid) == 0 && !apart)
				w_fail(w, "container %d of %s was given %s twice", container, p->name, a->uuid);
		}
	}
	if (count != p->asks[container].count)
		w_fail(w, "container %d of %s was given %d cards for %d", container, p->name, count,
		       p->asks[container].count);
}

static void check_quotas(struct world *w, const struct w_pod *p)
{
	struct o_space held = oracle_space(w, p->space);
	struct o_use own = use_of_record(p, NULL);

	for (int i = 0; i < p->held.count; i++)
		if (p->held.shares[i].size > 0)
			return; /* an instance is what is asked for, rounded up; the quota was asked for the former */
	for (int i = 0; i < W_QUOTAS; i++) {
		const struct w_quota *q = &w->quotas[p->space][i];
		if (!q->set)
			continue;
		if ((q->memory != W_NO_LIMIT && own.memory > 0 && held.memory > q->memory) ||
		    (q->cores != W_NO_LIMIT && own.cores > 0 && held.cores > q->cores))
			w_fail(w, "%s has %lld MiB and %lld cores, above its quota %s", w_spaces[p->space], held.memory,
			       held.cores, w_quotas[i]);
	}
}

void oracle_check_promise(struct world *w, const struct w_pod *p)
{
	for (int i = 0; i < p->held.count; i++)
		check_card(w, p, &p->held.shares[i]);
	for (int i = 0; i < p->count; i++)
		check_container(w, p, i);
	check_quotas(w, p);
}

/* ---- a refusal */

static bool card_has_room(const struct world *w, int node, int card, const struct w_ask *a)
{
	const struct w_card *c = &w->nodes[node].cards[card];
	struct o_card o = oracle_card(w, node, card, NULL);

	if (!c->present || !c->healthy || c->cordoned || c->cut || o.blocked > 0 || o.use.slots >= c->count)
		return false;
	if (a->cores == 100 && c->cores == 100 && o.use.slots > 0)
		return false;
	if (a->cores == 0 && o.use.cores >= c->cores)
		return false;
	return o.use.memory + memory_of(a, c->memory) <= c->memory && o.use.cores + a->cores <= c->cores;
}

static bool is_simple(const struct world *w, const struct w_pod *p)
{
	for (int i = 0; i < W_QUOTAS; i++)
		if (w->quotas[p->space][i].set)
			return false;
	return p->count == 1 && p->numa_bind == NULL &&
	       (p->card_policy == NULL || strcmp(p->card_policy, "mutex") != 0);
}

/* How many of its cards would do; none where it is away. */
static int cards_for(const struct world *w, const struct w_pod *p, int node)
{
	int room = 0;

	for (int c = 0; c < W_CARDS && w->nodes[node].present; c++)
		room += card_has_room(w, node, c, &p->asks[0]);
	return room;
}

static bool may_go(const struct w_pod *p, const struct w_pod *holder, int node)
{
	return holder->belief == W_HELD && holder->held.node == node && !holder->held_terminating &&
	       holder->priority < p->priority;
}

/* As if those were gone: who is being deleted, and victims, or all who may go. */
static bool room_without(const struct world *w, const struct w_pod *p, int node, struct w_pod *const *victims,
			 int count, const struct w_pod *but)
{
	static struct world without; /* too large for the stack, and looked at only */

	without = *w;
	for (int i = 0; i < W_PODS; i++) {
		struct w_pod *it = &without.pods[i];
		bool goes = it->belief == W_HELD && it->held_terminating;
		for (int k = 0; k < count; k++)
			goes |= victims[k] == &w->pods[i] && victims[k] != but;
		if (goes || (victims == NULL && may_go(p, it, node)))
			it->belief = W_FREE;
	}
	return cards_for(&without, p, node) >= p->asks[0].count;
}

static bool has_cut_cards(const struct w_node *n)
{
	bool any = false;

	for (int i = 0; i < W_CARDS; i++)
		any |= n->cards[i].present && n->cards[i].cut;
	return any;
}

void oracle_check_victims(struct world *w, const struct w_pod *p, int node, struct w_pod *const *victims, int count)
{
	for (int i = 0; i < count; i++)
		if (!may_go(p, victims[i], node))
			w_fail(w, "%s would have to go for %s, and may not", victims[i]->name, p->name);
	if (!is_simple(w, p) || has_cut_cards(&w->nodes[node]))
		return;
	if (count < 0 && !room_without(w, p, node, victims, 0, NULL) && room_without(w, p, node, NULL, 0, NULL))
		w_fail(w, "%s would fit on %s without others", p->name, w->nodes[node].name);
	if (count >= 0 && !room_without(w, p, node, victims, count, NULL))
		w_fail(w, "%s would not fit on %s without its victims", p->name, w->nodes[node].name);
	for (int i = 0; i < count; i++)
		if (room_without(w, p, node, victims, count, victims[i]))
			w_fail(w, "%s could stay when %s comes", victims[i]->name, p->name);
}

void oracle_check_refusal(struct world *w, const struct w_pod *p, const bool candidates[W_NODES])
{
	if (!is_simple(w, p))
		return;
	for (int n = 0; n < W_NODES; n++) {
		int room = cards_for(w, p, n);
		if (candidates[n] && room >= p->asks[0].count)
			w_fail(w, "%s was refused, and %s has %d cards for it", p->name, w->nodes[n].name, room);
	}
}

void oracle_check_belief(struct world *w)
{
	for (int i = 0; i < W_PODS; i++) {
		const struct w_pod *p = &w->pods[i];
		bool known = p->belief == W_BINDING || p->belief == W_HELD;
		if (!w_is_bound(p))
			continue;
		if (p->text.bare)
			known = p->text.garbage ? known : p->belief != W_RESERVED;
		else
			known = known && p->held.node == p->text.node;
		if (!known)
			w_fail(w, "%s is bound, and the scheduler does not know", p->name);
	}
}
