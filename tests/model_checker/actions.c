#include "model_checker/actions.h"

#include <string.h>

#include "model_checker/oracle.h"

enum { LEASE_MS = 1000 };

/* ---- what the scheduler knows after being told; the world's side of subject_tell_pod */

static void forget(struct w_pod *p)
{
	p->belief = W_FREE;
	p->held_terminating = p->asked_nobody = p->told = false;
}

static void believe(struct w_pod *p)
{
	p->held = p->text;
	p->held_terminating = p->phase == W_TERMINATING;
	p->belief = W_HELD;
	p->asked_nobody = false;
	p->told = true;
}

/* A pod with nothing written on it: a promise to it is over, what is known of it stays, and where it runs it holds. */
static void learn_of_bare(struct w_pod *p)
{
	if (p->belief == W_RESERVED)
		forget(p);
	if (p->belief == W_FREE && p->text.garbage)
		believe(p);
	p->told = p->belief == W_HELD;
}

static void learn(struct w_pod *p, bool fresh)
{
	if (fresh || p->phase == W_ENDED || p->phase == W_GONE) {
		forget(p);
		p->seen_on = -1;
	}
	if (!w_is_bound(p))
		return;
	p->seen_on = p->text.node;
	if (p->text.bare)
		learn_of_bare(p);
	else
		believe(p);
}

static void tell(struct world *w, struct subject *s, struct w_pod *p)
{
	w_say(w, "tell of %s", p->name);
	subject_tell_pod(w, s, p);
	learn(p, false);
}

/* ---- scheduling */

static void filter(struct world *w, struct subject *s, struct w_pod *p)
{
	bool candidates[W_NODES];
	struct hm_err e;

	for (int i = 0; i < W_NODES; i++)
		candidates[i] = w_chance(w, 75);
	if (p->phase != W_PENDING)
		return;
	if (p->belief == W_BINDING || p->belief == W_HELD) {
		if (cluster_may_place(s->c, p->uid, &e) != -HM_EEXIST)
			w_fail(w, "%s may be placed, and is being bound", p->name);
		return;
	}
	forget(p);
	p->expires_ms = w->now_ms + LEASE_MS;
	if (subject_place(w, s, p, candidates, p->expires_ms)) {
		p->belief = W_RESERVED;
		w_say(w, "filter: %s on %s", p->name, w->nodes[p->held.node].name);
		for (int i = 0; i < p->held.count; i++)
			w_say(w, "    container %d: %s, %d MiB, %d cores, slices %d+%d", p->held.shares[i].container,
			      p->held.shares[i].uuid, p->held.shares[i].memory, p->held.shares[i].cores,
			      p->held.shares[i].start, p->held.shares[i].size);
		oracle_check_promise(w, p);
	} else {
		w_say(w, "filter: %s nowhere", p->name);
		oracle_check_refusal(w, p, candidates);
	}
}

/* A pod that was refused may be worth others; it is a question alone. */
static void preempt(struct world *w, struct subject *s, struct w_pod *p)
{
	struct w_pod *victims[W_PODS];
	int node = (int)w_roll(w, W_NODES), count;

	if (p->phase != W_PENDING || p->belief != W_FREE)
		return;
	count = subject_preempt(w, s, p, node, victims);
	w_say(w, "%s: %d would have to go from %s", p->name, count, w->nodes[node].name);
	oracle_check_victims(w, p, node, victims, count);
}

/* The API server's side of a Binding. */
static bool api_binds(struct world *w, struct w_pod *p)
{
	if (p->phase != W_PENDING || w_chance(w, 20))
		return false;
	p->phase = W_BOUND;
	p->text = p->held;
	return true;
}

static void bind(struct world *w, struct subject *s, struct w_pod *p)
{
	const char *node = w->nodes[p->belief == W_FREE ? 0 : p->held.node].name;
	struct hm_err e;
	bool bound;
	int want = p->belief == W_RESERVED ? 0 : p->belief == W_FREE ? -HM_ENOTFOUND : -HM_EEXIST;

	if (cluster_confirm(s->c, p->uid, node, &e) != want)
		w_fail(w, "%s: its reservation is not confirmed as it should be (%d)", p->name, want);
	if (want != 0)
		return;
	p->belief = W_BINDING;
	bound = api_binds(w, p);
	if (w_chance(w, 25)) {
		w_say(w, "bind: %s %s, and the answer is lost", p->name, bound ? "bound" : "not bound");
		p->asked_nobody = true;
	} else if (bound) {
		w_say(w, "bind: %s", p->name);
		cluster_bound(s->c, p->uid);
		p->belief = W_HELD;
		p->held_terminating = p->told = false;
	} else {
		w_say(w, "bind: %s refused", p->name);
		cluster_roll_back(s->c, p->uid);
		forget(p);
	}
}

/* Where an answer was lost, the scheduler reads the pod. */
static void resolve(struct world *w, struct subject *s, struct w_pod *p)
{
	if (!p->asked_nobody)
		return;
	w_say(w, "%s is read after a lost answer", p->name);
	if (!w_is_bound(p) || p->text.bare) {
		cluster_roll_back(s->c, p->uid);
		forget(p);
	}
	if (w_is_bound(p))
		tell(w, s, p);
}

static void wait_a_while(struct world *w, struct subject *s)
{
	size_t want = 0;

	w->now_ms += w_roll(w, LEASE_MS);
	for (int i = 0; i < W_PODS; i++) {
		struct w_pod *p = &w->pods[i];
		if (p->belief != W_RESERVED || p->expires_ms > w->now_ms)
			continue;
		forget(p);
		want++;
	}
	w_say(w, "%llu ms later, %zu reservations expire", (unsigned long long)w->now_ms, want);
	if (cluster_expire(s->c, w->now_ms) != want)
		w_fail(w, "other than %zu reservations expired", want);
}

/* ---- pods */

static void delete_pod(struct world *w, struct subject *s, struct w_pod *p)
{
	if (p->phase == W_BOUND)
		p->phase = W_TERMINATING;
	else if (p->phase != W_GONE)
		p->phase = W_GONE;
	w_say(w, "%s is %s", p->name, p->phase == W_GONE ? "gone" : "being deleted");
	if (w_chance(w, 50))
		tell(w, s, p);
}

static void end_pod(struct world *w, struct subject *s, struct w_pod *p)
{
	if (!w_is_bound(p))
		return;
	p->phase = W_ENDED;
	w_say(w, "%s has ended", p->name);
	if (w_chance(w, 50))
		tell(w, s, p);
}

static void end_init(struct world *w, struct subject *s, struct w_pod *p)
{
	bool any = false;

	for (int i = 0; i < p->count; i++)
		any |= p->asks[i].kind == W_INIT;
	if (!any || p->phase != W_BOUND || (p->text.bare && !p->text.garbage))
		return;
	p->init_done = true;
	w_say(w, "%s's init containers are done", p->name);
	tell(w, s, p);
}

/* A pod begins again under its name. The scheduler has seen the end of the one before. */
static void renew(struct world *w, struct subject *s, struct w_pod *p)
{
	if (p->phase == W_ENDED)
		p->phase = W_GONE;
	if (p->phase != W_GONE)
		return;
	tell(w, s, p);
	w_make_pod(w, p);
}

/* Somebody else binds it; the watch says so at once, and what is promised it is forgotten. */
static void bind_elsewhere(struct world *w, struct subject *s, struct w_pod *p)
{
	if (p->phase != W_PENDING)
		return;
	w_make_text(w, p, &p->text);
	p->phase = W_BOUND;
	w_say(w, "%s is bound to %s by somebody else%s", p->name, w->nodes[p->text.node].name,
	      p->text.bare
		      ? p->text.garbage ? ", nothing is written on it, and it runs" : ", and nothing is written on it"
	      : p->text.garbage ? ", and its text cannot be read"
				: "");
	tell(w, s, p);
}

/* ---- the rest of the world */

static void change_node(struct world *w, struct subject *s)
{
	int node = (int)w_roll(w, W_NODES);
	struct w_node *n = &w->nodes[node];

	if (w_chance(w, 25)) {
		struct w_card *c = &n->cards[w_roll(w, W_CARDS)];
		c->cordoned = !c->cordoned;
		w_say(w, "%s is %scordoned", c->uuid, c->cordoned ? "" : "un");
		subject_cordon_node(w, s, node);
		return;
	}
	if (w_chance(w, 20)) {
		w_make_host(w, n);
		w_say(w, "%s has %d milli CPU and %d MiB", n->name, n->cpu_milli, n->host_mib);
		subject_set_host(w, s, node);
		return;
	}
	if (w_chance(w, 40)) {
		n->present = !n->present;
		w_say(w, "%s is %s", n->name, n->present ? "back" : "gone");
	} else {
		w_make_card(w, &n->cards[w_roll(w, W_CARDS)]);
		w_say(w, "%s has other cards:", n->name);
	}
	for (int i = 0; n->present && i < W_CARDS; i++)
		if (n->cards[i].present)
			w_say(w, "    %s: %d slots, %d MiB, %d cores%s%s", n->cards[i].uuid, n->cards[i].count,
			      n->cards[i].memory, n->cards[i].cores, n->cards[i].cut ? ", cut" : "",
			      n->cards[i].healthy ? "" : ", not well");
	subject_put_node(w, s, node);
}

static void tell_quota(struct world *w, struct subject *s, int space, int quota)
{
	const struct w_quota *q = &w->quotas[space][quota];
	struct hm_err e;

	if (!q->set)
		quotas_remove(cluster_quotas(s->c), w_spaces[space], w_quotas[quota]);
	else if (quotas_set(cluster_quotas(s->c), w_spaces[space], w_quotas[quota],
			    (struct quota_limits) { q->memory == W_NO_LIMIT ? QUOTA_NO_LIMIT : q->memory,
						    q->cores == W_NO_LIMIT ? QUOTA_NO_LIMIT : q->cores },
			    &e) < 0)
		w_fail(w, "%s", e.msg);
}

static void change_quota(struct world *w, struct subject *s)
{
	static const long long memory[] = { W_NO_LIMIT, 0, 500, 1000, 2000 },
			       cores[] = { W_NO_LIMIT, W_NO_LIMIT, 50, 150 };
	int space = (int)w_roll(w, W_SPACES), quota = (int)w_roll(w, W_QUOTAS);
	struct w_quota *q = &w->quotas[space][quota];

	*q = (struct w_quota) { .set = w_chance(w, 30), .memory = W_PICK(w, memory), .cores = W_PICK(w, cores) };
	w_say(w, "quota %s of %s: %s %lld MiB, %lld cores", w_quotas[quota], w_spaces[space], q->set ? "is" : "gone",
	      q->memory, q->cores);
	tell_quota(w, s, space, quota);
}

void restart(struct world *w, struct subject *s)
{
	int order[W_NODES + W_PODS];

	w_say(w, "the scheduler starts again");
	subject_restart(s);
	for (int i = 0; i < W_NODES + W_PODS; i++) {
		int k = (int)w_roll(w, (uint64_t)i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < W_NODES + W_PODS; i++) {
		struct w_pod *p;
		if (order[i] < W_NODES) {
			subject_put_node(w, s, order[i]);
			continue;
		}
		p = &w->pods[order[i] - W_NODES];
		subject_tell_pod(w, s, p);
		learn(p, true);
	}
	for (int i = 0; i < W_SPACES; i++)
		for (int k = 0; k < W_QUOTAS; k++)
			tell_quota(w, s, i, k);
}

/* The watch is cut, and all pods are listed anew. Of those that were told of the reflector knows that they are gone;
 * those whose Binding alone was answered are known to be gone by the list's end. A Binding of meanwhile is not in it.
 */
static void list_anew(struct world *w, struct subject *s, struct w_pod *meanwhile)
{
	size_t want = 0, gone;

	w_say(w, "the watch is cut");
	cluster_list_begins(s->c);
	for (int i = 0; i < W_PODS; i++) {
		struct w_pod *p = &w->pods[i];
		if (p->told || p->seen_on >= 0 || (p->phase != W_ENDED && p->phase != W_GONE))
			tell(w, s, p);
	}
	bind(w, s, meanwhile);
	for (int i = 0; i < W_PODS; i++) {
		struct w_pod *p = &w->pods[i];
		if (p->belief != W_HELD || p->told || p->phase == W_BOUND)
			continue;
		forget(p);
		want++;
	}
	gone = cluster_list_ended(s->c);
	w_say(w, "the list has ended; %zu are gone", want);
	if (gone != want)
		w_fail(w, "%zu pods are found to be gone, and %zu are", gone, want);
}

void settle(struct world *w, struct subject *s)
{
	w_say(w, "all comes to rest");
	for (int i = 0; i < W_PODS; i++) {
		resolve(w, s, &w->pods[i]);
		tell(w, s, &w->pods[i]);
	}
	w->now_ms += LEASE_MS;
	wait_a_while(w, s);
}

void act(struct world *w, struct subject *s)
{
	static void (*const of_pods[])(struct world *, struct subject *, struct w_pod *) = {
		preempt, preempt, filter,  filter,   filter,  filter,     filter,     bind,  bind,  bind,  bind,
		tell,    tell,    resolve, end_init, end_pod, delete_pod, delete_pod, renew, renew, renew,
	};
	struct w_pod *p = &w->pods[w_roll(w, W_PODS)];

	switch (w_roll(w, 40)) {
	case 0: restart(w, s); break;
	case 1:
	case 2: change_node(w, s); break;
	case 3:
	case 4: change_quota(w, s); break;
	case 5:
	case 6: wait_a_while(w, s); break;
	case 7: bind_elsewhere(w, s, p); break;
	case 8: settle(w, s); break;
	case 9: list_anew(w, s, p); break;
	default: W_PICK(w, of_pods)(w, s, p);
	}
}
