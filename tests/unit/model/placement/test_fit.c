/* HAMi's worked traces (four cards of one node), and what goes beyond them. */
#include "model/placement/fit.h"

#include "make_node.h"

/* GPU-0 is full, GPU-1 in part, GPU-2 and GPU-3 are empty; two NUMA nodes. */
static struct node_state *traced_node(struct texts *texts)
{
	struct node_state *n = node_state_new("n1", texts);

	for (unsigned i = 0; i < 4; i++) {
		struct node_card c = make_card(i);

		c.numa = (int32_t)i / 2;
		add_card(n, c);
	}
	take(n, 0, 1, 81920, 100);
	take(n, 1, 2, 40000, 40);
	return n;
}

/* "GPU-3,20000,30:GPU-2,20000,30:;" of the grant, or the refusal. */
static void describe(const struct node_state *n, const struct pod_ask *ask, const struct grant *g,
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

static void expect(const char *what, const struct node_state *n, const struct pod_ask *ask, const char *policy,
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

static void expect_one(const char *what, const struct node_state *n, struct card_ask c, const char *policy,
		       struct pod_wishes wishes, const char *want)
{
	struct pod_ask ask = { .containers = &c, .count = 1, .wishes = wishes };

	expect(what, n, &ask, policy, NULL, want);
}

#define SOME(n)                                                                                                        \
	{                                                                                                              \
		ASK_APP, n, 20000, 0, 30                                                                               \
	}
#define WHOLE(n)                                                                                                       \
	{                                                                                                              \
		ASK_APP, n, 0, 100, 100                                                                                \
	}

static void worked_traces(void **state)
{
	static const struct {
		const char *policy, *numa_bind;
		struct card_ask ask;
		const char *want;
	} cases[] = {
		{ "spread", NULL, SOME(2), "GPU-3,20000,30:GPU-2,20000,30:;" },
		{ "binpack", NULL, SOME(2), "GPU-1,20000,30:GPU-3,20000,30:;" },
		{ "binpack", NULL, WHOLE(2), "GPU-3,81920,100:GPU-2,81920,100:;" },
		{ "spread", NULL, WHOLE(3), "2/4 AllocatedCardsInsufficientRequest, 2/4 CardInsufficientMemory" },
		{ "spread", "true", SOME(2), "GPU-3,20000,30:GPU-2,20000,30:;" },
		{ "spread", "true", SOME(3),
		  "1/4 AllocatedCardsInsufficientRequest, 1/4 CardInsufficientMemory, 2/4 NumaNotFit for good" },
		{ "mutex", NULL, { ASK_APP, 1, 1000, 0, 0 }, "GPU-3,1000,0:;" },
		{ "spread", NULL, { ASK_APP, 5, 1000, 0, 0 }, "NodeInsufficientDevice for good" },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = traced_node(texts);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++)
		expect_one(cases[i].policy, n, cases[i].ask, cases[i].policy,
			   (struct pod_wishes) { .numa_bind = cases[i].numa_bind }, cases[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
