/* A pod held against a node, and what comes out as one line. */
#ifndef TESTS_MAKE_FIT_H
#define TESTS_MAKE_FIT_H

#include "make_node.h"
#include "model/placement/fit.h"

/* "GPU-3,20000,30:GPU-2,20000,30:;" of the grant, or the refusal. */
static inline void describe(const struct node_state *n, const struct pod_ask *ask, const struct grant *g,
			    const struct refusal *why, int fits, struct str *out)
{
	if (!fits) {
		refusal_write(why, out);
		str_add(out, why->unresolvable ? " for good" : "");
		return;
	}
	for (size_t i = 0, k = 0; i < ask->count; i++) {
		for (; k < g->count && g->shares[k].container == i; k++) {
			const struct card_share *s = &g->shares[k];

			str_addf(out, "%s,%d,%d", n->cards[s->card].uuid, s->memory_mib, s->cores);
			if (s->at.size > 0)
				str_addf(out, ",%s@%u", n->profiles[s->profile].name, s->at.start);
			str_addc(out, ':');
		}
		str_addc(out, ';');
	}
}

static inline void expect(const char *what, const struct node_state *n, const struct pod_ask *ask, const char *policy,
			  const struct quota_amount *room, const char *want)
{
	hm_auto(fitter) *f = fitter_new();
	hm_auto_grant g = { 0 };
	hm_auto_str got = { 0 };
	struct refusal why;
	struct hm_err e;

	if (fitter_read(f, ask, policy, &e) < 0) {
		str_add(&got, e.msg);
	} else {
		int fits;

		if (room != NULL)
			fitter_set_quota(f, *room);
		fits = fit_pod(f, n, &g, &why, &e);
		assert_in_range(fits, 0, 1);
		describe(n, ask, &g, &why, fits, &got);
	}
	if (strcmp(str_text(&got), want) != 0)
		fail_msg("%s: %s\n not: %s", what, str_text(&got), want);
}

static inline void expect_one(const char *what, const struct node_state *n, struct card_ask c, const char *policy,
			      struct pod_wishes wishes, const char *want)
{
	struct pod_ask ask = { .containers = &c, .count = 1, .wishes = wishes };

	expect(what, n, &ask, policy, NULL, want);
}

static inline struct node_state *equal_cards(struct texts *texts, unsigned count)
{
	struct node_state *n = node_state_new("n1", texts);

	for (unsigned i = 0; i < count; i++)
		add_card(n, make_card(i));
	return n;
}

static inline void expect_many(const char *what, const struct node_state *n, struct card_ask *asks, size_t count,
			       const char *policy, const char *want)
{
	struct pod_ask ask = { .containers = asks, .count = count };

	expect(what, n, &ask, policy, NULL, want);
}

#endif
