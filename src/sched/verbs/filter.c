#include "sched/verbs/filter.h"

#include <string.h>

#include "base/array.h"
#include "sched/extender/answer.h"
#include "sched/extender/args.h"
#include "sched/verbs/what_if.h"

struct filter {
	struct filter_config config;
	/* Kept from call to call: a refusal for each candidate, and the texts of their reasons one after the other. */
	struct extender_refusal *refusals;
	size_t refusal_count, refusal_cap;
	struct str reasons;
	struct filter_stats stats;
};

int filter_new(const struct filter_config *config, struct filter **out, struct hm_err *e)
{
	struct filter *f = calloc(1, sizeof *f);

	if (f == NULL)
		return hm_err_set(e, HM_ENOMEM, "filter");
	f->config = *config;
	*out = f;
	return 0;
}

void filter_free(struct filter *f)
{
	if (f == NULL)
		return;
	free(f->refusals);
	str_fini(&f->reasons);
	free(f);
}

/* ---- answers */

static void tell(struct filter *f, const struct filter_outcome *o)
{
	if (f->config.told != NULL)
		f->config.told(f->config.arg, o);
}

static void answer_error(struct filter *f, const struct pod_ask *ask, const char *text, struct str *out)
{
	f->stats.failed++;
	extender_add_error(out, text);
	tell(f, &(struct filter_outcome) { .ask = ask, .error = text });
}

/* The pod has no name to tell of. */
static void answer_unread(struct filter *f, const char *text, struct str *out)
{
	f->stats.failed++;
	extender_add_error(out, text);
}

/* Most nodes are refused for what their neighbour was. */
static bool same_reason(const struct place_result *r, size_t i)
{
	const struct refused_node *a = &r->refused[i], *b = a - 1;

	return i > 0 && a->unregistered == b->unregistered && a->why.too_few_cards == b->why.too_few_cards &&
	       a->why.cards == b->why.cards && memcmp(a->why.counts, b->why.counts, sizeof a->why.counts) == 0;
}

/* The reasons' text grows while they are written, so first all of it, then the pointers into it. */
static bool list_refusals(struct filter *f, const struct place_result *r)
{
	const char *reason;

	str_clear(&f->reasons);
	for (size_t i = 0; i < r->refused_count; i++) {
		if (same_reason(r, i))
			continue;
		if (r->refused[i].unregistered)
			str_add(&f->reasons, REASON_UNREGISTERED);
		else
			refusal_write(&r->refused[i].why, &f->reasons);
		str_addc(&f->reasons, '\0');
	}
	if (str_failed(&f->reasons) ||
	    !array_reserve(&f->refusals, &f->refusal_cap, r->refused_count, sizeof *f->refusals))
		return false;
	reason = str_text(&f->reasons);
	for (size_t i = 0; i < r->refused_count; i++) {
		const struct refused_node *n = &r->refused[i];

		if (i > 0 && !same_reason(r, i))
			reason += strlen(reason) + 1;
		f->refusals[i] = (struct extender_refusal) { n->name, reason, n->why.unresolvable };
	}
	f->refusal_count = r->refused_count;
	return true;
}

/* A wish that cannot be read fails the call, in HAMi's words. */
static void answer_failure(struct filter *f, const struct pod_ask *ask, const struct hm_err *why, struct str *out)
{
	hm_auto_str text = { 0 };

	if (why->code == HM_EINVAL)
		str_addf(&text, "calcScore failed %s for pod %s", why->msg, ask->name);
	else
		str_add(&text, why->msg);
	answer_error(f, ask, str_text(&text), out);
}

/* ---- a pod that asks for cards */

static void place(struct filter *f, const struct extender_args *a, const struct pod_ask *ask, uint64_t now_ms,
		  struct str *out)
{
	static const char *const none[1];
	/* No candidates are not all nodes. */
	const struct place_request request = { .ask = ask,
					       .names = a->names != NULL ? a->names : none,
					       .count = a->name_count };
	struct place_result r = { 0 };
	struct hm_err e;
	int placed = place_pod(f->config.placer, f->config.cluster, &request, &r, &e);

	if (placed > 0 &&
	    cluster_reserve(f->config.cluster, ask, r.node->name, r.grant, now_ms + FILTER_RESERVE_MS, &e) < 0)
		placed = -e.code;
	if (placed < 0) {
		answer_failure(f, ask, &e, out);
		return;
	}
	if (placed > 0) {
		const char *name = r.node->name;

		extender_add_names(out, &name, 1);
	} else if (list_refusals(f, &r)) {
		extender_add_refusals(out, f->refusals, f->refusal_count);
	} else {
		answer_error(f, ask, "out of memory", out);
		return;
	}
	*(placed > 0 ? &f->stats.placed : &f->stats.nowhere) += 1;
	tell(f, &(struct filter_outcome) { .ask = ask,
					   .node = placed > 0 ? r.node->name : NULL,
					   .score = r.score,
					   .refused = r.refused,
					   .refused_count = r.refused_count,
					   .candidates = a->name_count });
}

static void ask_what_if(struct filter *f, const struct extender_args *a, const struct pod_ask *ask, struct str *out)
{
	hm_auto_what_if nodes = { 0 };
	struct place_request request = { .ask = ask };
	struct place_result r = { 0 };
	struct hm_err e;
	int placed = what_if_read(a->nodes, a->node_count, &f->config.nodes, &nodes, &e);
	size_t at = 0;

	if (placed == 0) {
		request.names = (const char *const *)nodes.names;
		request.count = nodes.count;
		request.nodes = (const struct node_state *const *)nodes.states;
		placed = place_pod(f->config.placer, f->config.cluster, &request, &r, &e);
	}
	if (placed < 0) {
		answer_failure(f, ask, &e, out);
		return;
	}
	if (!list_refusals(f, &r)) {
		answer_error(f, ask, "out of memory", out);
		return;
	}
	while (placed > 0 && strcmp(nodes.names[at], r.node->name) != 0)
		at++;
	f->stats.asked++;
	extender_add_nodes(out, a->nodes + at, placed > 0, f->refusals, f->refusal_count);
}

/* All that was named will do. */
static void echo(struct filter *f, const struct extender_args *a, struct str *out)
{
	f->stats.passed++;
	if (a->has_names || !a->has_nodes)
		extender_add_names(out, a->has_names ? a->names : NULL, a->name_count);
	else
		extender_add_nodes(out, a->nodes, a->node_count, NULL, 0);
}

/* Each promise keeps them. */
static bool is_too_long(const char *name)
{
	return strlen(name) > EXTENDER_MAX_NAME_BYTES;
}

static void answer_pod(struct filter *f, const struct extender_args *a, uint64_t now_ms, struct str *out)
{
	const char *barred = f->config.barred != NULL ? f->config.barred(f->config.arg) : NULL;
	hm_auto_pod_ask ask = { 0 };
	struct hm_err e;

	if (pod_read_ask(a->pod, &f->config.pods, &ask, &e) < 0)
		answer_error(f, &ask, e.msg, out);
	else if (is_too_long(ask.name) || is_too_long(ask.name_space) || is_too_long(ask.uid))
		answer_unread(f, "the pod's name, namespace or uid is too long", out);
	else if (!pod_ask_any(&ask))
		echo(f, a, out);
	else if (barred != NULL)
		answer_error(f, &ask, barred, out);
	else if (a->has_nodes)
		ask_what_if(f, a, &ask, out);
	else if (a->has_names && ask.uid[0] == '\0')
		answer_error(f, &ask, "the pod has no uid", out);
	else if (a->has_names)
		place(f, a, &ask, now_ms, out);
	else
		answer_error(f, &ask, "extender args have neither NodeNames nor Nodes", out);
}

void filter_answer(struct filter *f, char *body, size_t n, uint64_t now_ms, struct str *out)
{
	struct extender_args args;
	struct hm_err e;

	if (extender_args_read(body, n, &args, &e) == 0) {
		answer_pod(f, &args, now_ms, out);
	} else {
		answer_unread(f, e.msg, out);
	}
	extender_args_fini(&args);
}

const struct filter_stats *filter_stats(const struct filter *f)
{
	return &f->stats;
}
