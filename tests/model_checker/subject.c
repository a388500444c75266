#include "model_checker/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "model/placement/preempt.h"
#include "model_checker/oracle.h"
#include "sched/view/host_read.h"
#include "sched/view/pod_hold.h"

static const struct pod_rules rules = {
	.count = "nvidia.com/gpu",
	.memory = "nvidia.com/gpumem",
	.percent = "nvidia.com/gpumem-percentage",
	.cores = "nvidia.com/gpucores",
	.ask = { .memory_factor = 1 },
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "model-checker: %s\n", what);
	abort();
}

void subject_restart(struct subject *s)
{
	placer_free(s->p);
	cluster_free(s->c);
	s->c = cluster_new(1);
	s->p = placer_new("binpack", "spread");
	must(s->c != NULL && s->p != NULL, "out of memory");
	if (s->fgd != NULL)
		placer_set_policy(s->p, fgd_order(s->fgd));
}

void subject_init(struct subject *s, bool with_fgd)
{
	struct fgd_weights weights = fgd_default_weights();

	*s = (struct subject) { 0 };
	if (with_fgd) {
		s->fgd = fgd_new(&s->mix, &weights);
		must(s->fgd != NULL, "out of memory");
		fgd_learn(s->fgd, &s->mix);
	}
	subject_restart(s);
}

void subject_fini(struct subject *s)
{
	placer_free(s->p);
	fgd_free(s->fgd);
	pod_mix_fini(&s->mix);
	cluster_free(s->c);
}

/* ---- nodes */

static void add_profiles(struct node_state *n)
{
	struct hm_err e;

	for (size_t i = 0; i < HM_COUNT(w_profiles); i++) {
		const struct w_profile *f = &w_profiles[i];
		struct card_profile p = { .memory_mib = f->memory, .cores = f->cores, .slices = f->size };
		struct mig_placement places[W_SLICES];
		snprintf(p.name, sizeof p.name, "%s", f->name);
		for (int k = 0; k < f->places; k++)
			places[k] = (struct mig_placement) { (uint32_t)(k * f->size), (uint32_t)f->size };
		must(node_state_add_profile(n, &p, places, (size_t)f->places, &e) == 0, "a profile");
	}
}

/* hami.io/device-cordon. */
static void write_cordon(const struct w_node *n, char *out, size_t cap)
{
	size_t at = 0;

	out[0] = '\0';
	for (int i = 0; i < W_CARDS; i++)
		if (n->cards[i].cordoned)
			at += (size_t)snprintf(out + at, cap - at, "%s,", n->cards[i].uuid);
}

void subject_cordon_node(struct world *w, struct subject *s, int node)
{
	char text[128];

	write_cordon(&w->nodes[node], text, sizeof text);
	cluster_cordon_node(s->c, w->nodes[node].name, text);
}

void subject_set_host(struct world *w, struct subject *s, int node)
{
	const struct w_node *n = &w->nodes[node];

	cluster_set_host(s->c, n->name, (struct host_amount) { n->cpu_milli, n->host_mib });
}

void subject_put_node(struct world *w, struct subject *s, int node)
{
	const struct w_node *from = &w->nodes[node];
	struct node_state *n;
	struct hm_err e;
	char cordon[128];

	if (!from->present) {
		cluster_remove_node(s->c, from->name);
		return;
	}
	n = node_state_new(from->name, cluster_texts(s->c));
	must(n != NULL, "out of memory");
	for (int i = 0; i < W_CARDS; i++) {
		const struct w_card *c = &from->cards[i];
		struct node_card card = { .count = c->count,
					  .memory_mib = c->memory,
					  .cores = c->cores,
					  .numa = c->numa,
					  .index = (uint32_t)i,
					  .healthy = c->healthy,
					  .type = "NVIDIA A100",
					  .mode = c->cut ? "mig" : "hami-core" };
		if (!c->present)
			continue;
		snprintf(card.uuid, sizeof card.uuid, "%s", c->uuid);
		must(node_state_add_card(n, &card, &e) == 0, "a card");
		if (c->cut)
			add_profiles(n);
	}
	write_cordon(from, cordon, sizeof cordon);
	node_state_cordon(n, cordon);
	n->cpu_milli = from->cpu_milli;
	n->host_mib = from->host_mib;
	must(cluster_put_node(s->c, n, &e) == 0, "a node");
}

/* ---- pods */

static struct cJSON *json_of(const struct world *w, const struct w_pod *p)
{
	hm_auto_str text = { 0 };
	struct cJSON *tree;
	struct hm_err e;

	w_write_pod(p, w, &text);
	must(json_parse(text.p, text.n, &tree, &e) == 0, "a pod's JSON");
	return tree;
}

void subject_tell_pod(struct world *w, struct subject *s, struct w_pod *p)
{
	static const struct pod_trust trust = { 0 };
	hm_auto(cJSON) *tree = NULL;
	hm_auto_pod_hold h = { 0 };
	struct hm_err e = { 0 };

	if (p->phase == W_GONE) {
		cluster_release(s->c, p->uid);
		return;
	}
	tree = json_of(w, p);
	/* As the view does: no text is no news of a pod that is known. */
	if (w_is_bound(p)) {
		cluster_seen(s->c, p->uid);
		must(cluster_take_host(s->c, p->uid, w->nodes[p->text.node].name, host_of_pod(tree), &e) == 0,
		     "a pod's CPU");
		if (!pod_is_told(tree) && (!pod_runs(tree) || cluster_find(s->c, p->uid) != NULL))
			return;
	}
	must(pod_hold_read(tree, &rules, &trust, &h, &e) == 0, "a pod is not read");
	if (h.holds) {
		if (cluster_hold(s->c, &h.hold, &e) < 0)
			w_fail(w, "%s is not held: %s", p->name, e.msg);
	} else if (p->phase == W_ENDED) {
		cluster_release(s->c, p->uid);
	}
}

static void keep(struct w_pod *p, const struct world *w, const struct place_result *r)
{
	p->held = (struct w_record) { .node = -1 };
	for (int i = 0; i < W_NODES; i++)
		if (strcmp(w->nodes[i].name, r->node->name) == 0)
			p->held.node = i;
	for (size_t i = 0; i < r->grant->count; i++) {
		const struct card_share *from = &r->grant->shares[i];
		struct w_share *to = &p->held.shares[p->held.count++];
		must(p->held.count < W_SHARES, "too many shares");
		*to = (struct w_share) { .container = (int)from->container,
					 .memory = from->memory_mib,
					 .cores = from->cores,
					 .start = (int)from->at.start,
					 .size = (int)from->at.size };
		snprintf(to->uuid, sizeof to->uuid, "%.23s", r->node->cards[from->card].uuid);
	}
}

bool subject_place(struct world *w, struct subject *s, struct w_pod *p, const bool candidates[W_NODES],
		   uint64_t expires_ms)
{
	const char *names[W_NODES];
	hm_auto(cJSON) *tree = json_of(w, p);
	hm_auto_pod_ask ask = { 0 };
	struct place_result r;
	struct hm_err e = { 0 };
	size_t n = 0;
	int placed;

	for (int i = 0; i < W_NODES; i++)
		if (candidates[i])
			names[n++] = w->nodes[i].name;
	must(pod_read_ask(tree, &rules, &ask, &e) == 0, "what a pod asks for is not read");
	placed = place_pod(s->p, s->c, &(struct place_request) { .ask = &ask, .names = names, .count = n }, &r, &e);
	if (placed < 0)
		w_fail(w, "%s is not placed: %s", p->name, e.msg);
	else if (placed == 0 && r.refused_count != n)
		w_fail(w, "%s is refused by %zu nodes of %zu", p->name, r.refused_count, n);
	else if (placed > 0) {
		keep(p, w, &r);
		if (p->held.node < 0 || !candidates[p->held.node])
			w_fail(w, "%s is placed on %s, which was not named", p->name, r.node->name);
		else if (cluster_reserve(s->c, &ask, r.node->name, r.grant, expires_ms, &e) < 0)
			w_fail(w, "%s is not reserved: %s", p->name, e.msg);
	}
	return placed > 0 && w->wrong.n == 0;
}

static struct w_pod *pod_of(struct world *w, const char *uid)
{
	for (int i = 0; i < W_PODS; i++)
		if (strcmp(w->pods[i].uid, uid) == 0)
			return &w->pods[i];
	return NULL;
}

int subject_preempt(struct world *w, struct subject *s, struct w_pod *p, int node, struct w_pod *victims[W_PODS])
{
	hm_auto(cJSON) *tree = json_of(w, p);
	hm_auto_pod_ask ask = { 0 };
	hm_auto(preempt) *choice = preempt_new();
	const struct preempt_victim *found;
	struct hm_err e = { 0 };
	size_t count = 0;
	int helps;

	must(choice != NULL && pod_read_ask(tree, &rules, &ask, &e) == 0, "what a pod asks for is not read");
	must(preempt_read(choice, s->c, &ask, "spread", &e) == 0, "a preemption");
	helps = preempt_node(choice, w->nodes[node].name, NULL, 0, &found, &count, &e);
	must(helps >= 0 && count <= W_PODS, "a preemption");
	for (size_t i = 0; i < count; i++) {
		victims[i] = pod_of(w, found[i].holding->uid);
		must(victims[i] != NULL, "a victim that is no pod");
	}
	return helps > 0 ? (int)count : -1;
}

/* ---- is it as the oracle says? */

static void compare_card(struct world *w, const struct node_state *n, size_t at, int node, int card)
{
	struct o_card want = oracle_card(w, node, card, NULL);
	const struct card_use *u = &n->used[at];
	const struct node_card *c = &n->cards[at];

	if (u->slots != want.use.slots || u->memory_mib != want.use.memory || u->cores != want.use.cores)
		w_fail(w, "%s has %lld/%lld/%lld taken (slots, MiB, cores), and should have %lld/%lld/%lld", c->uuid,
		       (long long)u->slots, (long long)u->memory_mib, (long long)u->cores, want.use.slots,
		       want.use.memory, want.use.cores);
	if (c->busy != want.busy || c->blocked != want.blocked)
		w_fail(w, "%s has slices %llx taken, %u blockers, and should have %x, %u", c->uuid,
		       (unsigned long long)c->busy, c->blocked, want.busy, want.blocked);
}

static long long rest_of(int all, long long taken)
{
	return all < 0 ? -1 : taken > all ? 0 : all - taken;
}

static void compare_host(struct world *w, const struct node_state *n, int node)
{
	const struct w_node *from = &w->nodes[node];
	struct o_host taken = oracle_host(w, node);
	long long cpu = rest_of(from->cpu_milli, taken.cpu_milli), mib = rest_of(from->host_mib, taken.mib);

	if (n->cpu_milli != cpu || n->host_mib != mib)
		w_fail(w, "%s has %lld milli CPU and %lld MiB left, and should have %lld, %lld", from->name,
		       (long long)n->cpu_milli, (long long)n->host_mib, cpu, mib);
}

static void compare_node(struct world *w, const struct subject *s, int node)
{
	const struct w_node *from = &w->nodes[node];
	const struct node_state *n = cluster_node(s->c, from->name);
	struct card_use sum = { 0 };

	if ((n != NULL) != from->present)
		w_fail(w, "%s is %sthere", from->name, n != NULL ? "" : "not ");
	for (int i = 0; n != NULL && i < W_CARDS; i++) {
		int at = node_state_find(n, from->cards[i].uuid);
		if ((at != NODE_NO_CARD) != from->cards[i].present)
			w_fail(w, "%s is %sthere", from->cards[i].uuid, at != NODE_NO_CARD ? "" : "not ");
		if (at == NODE_NO_CARD)
			continue;
		compare_card(w, n, (size_t)at, node, i);
		sum = card_use_sum(sum, n->used[at]);
	}
	if (n != NULL && memcmp(&sum, &n->totals.used, sizeof sum) != 0)
		w_fail(w, "the sums of %s are wrong", from->name);
	if (n != NULL)
		compare_host(w, n, node);
}

static void compare_spaces(struct world *w, const struct subject *s)
{
	struct o_space got[W_SPACES] = { 0 };
	struct quota_view v;

	for (size_t at = 0; quotas_next(cluster_quotas(s->c), &at, &v);)
		for (int i = 0; i < W_SPACES; i++)
			if (strcmp(v.name_space, w_spaces[i]) == 0)
				got[i] = (struct o_space) { v.held.memory_mib, v.held.cores };
	for (int i = 0; i < W_SPACES; i++) {
		struct o_space want = oracle_space(w, i);
		if (got[i].memory != want.memory || got[i].cores != want.cores)
			w_fail(w, "%s is charged %lld MiB, %lld cores, and should be %lld, %lld", w_spaces[i],
			       got[i].memory, got[i].cores, want.memory, want.cores);
	}
}

static void compare_pod(struct world *w, const struct subject *s, const struct w_pod *p)
{
	const struct holding *h = cluster_find(s->c, p->uid);
	enum hold_state want = p->belief == W_RESERVED  ? HOLD_RESERVED
			       : p->belief == W_BINDING ? HOLD_BINDING
			       : p->held_terminating    ? HOLD_TERMINATING
							: HOLD_BOUND;

	if ((h != NULL) != (p->belief != W_FREE))
		w_fail(w, "%s %s something", p->name, h != NULL ? "holds" : "does not hold");
	else if (h != NULL && h->state != want)
		w_fail(w, "%s is held as %d, and should be as %d", p->name, (int)h->state, (int)want);
}

void subject_compare(struct world *w, const struct subject *s)
{
	size_t held = 0;

	for (int i = 0; i < W_NODES; i++)
		compare_node(w, s, i);
	compare_spaces(w, s);
	for (int i = 0; i < W_PODS; i++) {
		compare_pod(w, s, &w->pods[i]);
		held += w->pods[i].belief != W_FREE;
	}
	if (cluster_holding_count(s->c) != held)
		w_fail(w, "%zu pods hold something, and %zu should", cluster_holding_count(s->c), held);
}
