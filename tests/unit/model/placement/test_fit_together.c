/* What is granted together: to containers that follow each other or run side by side, within a quota; sets of cards
 * that are joined; instances of one card. */
#include "model/placement/fit.h"

#include "make_fit.h"
#include "make_mig.h"

/* ---- containers over a pod's life */

static void init_containers_and_sidecars(void **state)
{
	struct card_ask asks[4] = {
		{ ASK_INIT, 1, 50000, 0, 60 },
		{ ASK_SIDECAR, 1, 30000, 0, 30 },
		{ ASK_INIT, 1, 50000, 0, 70 },
		{ ASK_APP, 1, 50000, 0, 70 },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = equal_cards(texts, 1);

	(void)state;
	expect_many("each beside the sidecar", n, asks, 4, "spread",
		    "GPU-0,50000,60:;GPU-0,30000,30:;GPU-0,50000,70:;GPU-0,50000,70:;");
	asks[2].memory_mib = 51921;
	expect_many("an init container beside the sidecar before it", n, asks, 4, "spread",
		    "1/1 CardInsufficientMemory for good");
	asks[2].memory_mib = 1;
	asks[0].memory_mib = 81920;
	expect_many("one before the sidecar has the card alone", n, asks, 4, "spread",
		    "GPU-0,81920,60:;GPU-0,30000,30:;GPU-0,1,70:;GPU-0,50000,70:;");
	asks[3].cores = 71;
	expect_many("the app beside the sidecar", n, asks, 4, "spread", "1/1 CardInsufficientCore for good");
}

static void quotas(void **state)
{
	static const struct {
		const char *what;
		struct quota_amount room;
		const char *want;
	} cases[] = {
		{ "enough", { 50000, 60 }, "GPU-3,40000,50:;GPU-3,25000,30:GPU-2,25000,30:;" },
		{ "a MiB less", { 49999, 60 }, "1/4 AllocatedCardsInsufficientRequest, 3/4 ResourceQuotaNotFit" },
		{ "a percent less", { 50000, 59 }, "1/4 AllocatedCardsInsufficientRequest, 3/4 ResourceQuotaNotFit" },
		{ "not for the init container", { 39999, QUOTA_NO_LIMIT }, "4/4 ResourceQuotaNotFit" },
		{ "overdrawn", { -1, QUOTA_NO_LIMIT }, "4/4 ResourceQuotaNotFit" },
	};
	struct card_ask asks[2] = { { ASK_INIT, 1, 40000, 0, 50 }, { ASK_APP, 2, 25000, 0, 30 } };
	struct pod_ask ask = { .containers = asks, .count = 2 };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = equal_cards(texts, 4);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++)
		expect(cases[i].what, n, &ask, "spread", &cases[i].room, cases[i].want);
}

/* ---- topology-aware */

/* 0-1 and 2-3 are joined well, 0-2 a little. */
static struct node_state *joined_node(struct texts *texts)
{
	static const struct {
		const char *a, *b;
		int32_t score;
	} pairs[] = { { "GPU-0", "GPU-1", 200 }, { "GPU-2", "GPU-3", 100 }, { "GPU-0", "GPU-2", 10 } };
	struct node_state *n = node_state_new("n1", texts);

	for (unsigned i = 0; i < 4; i++) {
		struct node_card c = make_card(i);

		c.numa = i == 1 || i == 2;
		add_card(n, c);
	}
	for (size_t i = 0; i < HM_COUNT(pairs); i++)
		join(n, pairs[i].a, pairs[i].b, pairs[i].score);
	return n;
}

static void topology_aware(void **state)
{
	static const struct {
		const char *what;
		uint32_t count;
		const char *numa_bind;
		struct quota_amount room;
		const char *want;
	} cases[] = {
		{ "a pair", 2, NULL, { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT }, "GPU-1,20000,0:GPU-0,20000,0:;" },
		{ "one: who is joined least", 1, NULL, { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT }, "GPU-3,20000,0:;" },
		{ "three", 3, NULL, { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT }, "GPU-2,20000,0:GPU-1,20000,0:GPU-0,20000,0:;" },
		/* Two of each node: 1 and 2, 0 and 3. None are joined; the first group found. */
		{ "a pair of one NUMA node",
		  2,
		  "true",
		  { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT },
		  "GPU-2,20000,0:GPU-1,20000,0:;" },
		{ "three of one NUMA node",
		  3,
		  "true",
		  { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT },
		  "2/4 AllocatedCardsInsufficientRequest, 2/4 NumaNotFit for good" },
		/* The quota is for the pair, not for all cards that would do. */
		{ "a quota for two", 2, NULL, { 40000, QUOTA_NO_LIMIT }, "GPU-1,20000,0:GPU-0,20000,0:;" },
		{ "a quota for one",
		  2,
		  NULL,
		  { 39999, QUOTA_NO_LIMIT },
		  "1/4 AllocatedCardsInsufficientRequest, 3/4 ResourceQuotaNotFit" },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = joined_node(texts);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_ask c = { ASK_APP, cases[i].count, 20000, 0, 0 };
		struct pod_ask ask = { .containers = &c, .count = 1, .wishes = { .numa_bind = cases[i].numa_bind } };

		expect(cases[i].what, n, &ask, "topology-aware", &cases[i].room, cases[i].want);
	}
}

/* Cards 0 and 1 of a NUMA node are joined better than 2 and 3 of the other, which is looked at first. */
static void the_best_numa_node(void **state)
{
	struct card_ask c = { ASK_APP, 2, 20000, 0, 0 };
	struct pod_ask ask = { .containers = &c, .count = 1, .wishes = { .numa_bind = "1" } };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = joined_node(texts);

	(void)state;
	for (size_t i = 0; i < 4; i++)
		n->cards[i].numa = (int32_t)i / 2;
	expect("200 beats 100", n, &ask, "topology-aware", NULL, "GPU-1,20000,0:GPU-0,20000,0:;");
	n->cards[1].healthy = false; /* only one left there */
	expect("the other", n, &ask, "topology-aware", NULL, "GPU-3,20000,0:GPU-2,20000,0:;");
}

/* ---- MIG */

static void mig(void **state)
{
	static const struct {
		const char *what;
		struct card_ask asks[2];
		size_t count;
		const char *mode, *policy, *want;
	} cases[] = {
		{ "two of a card",
		  { { ASK_APP, 2, 9000, 0, 10 } },
		  1,
		  NULL,
		  "spread",
		  "GPU-1,9984,29,2g.10gb@0:GPU-1,9984,29,2g.10gb@2:;" },
		{ "more than a card has",
		  { { ASK_APP, 4, 9000, 0, 10 } },
		  1,
		  "mig",
		  "spread",
		  "GPU-1,9984,29,2g.10gb@0:GPU-1,9984,29,2g.10gb@2:GPU-1,9984,29,2g.10gb@4:GPU-0,9984,29,2g.10gb@0:;" },
		{ "more than there are",
		  { { ASK_APP, 7, 9000, 0, 10 } },
		  1,
		  "mig",
		  "spread",
		  "2/2 CardMigTopologyInfeasible, 6/2 AllocatedCardsInsufficientRequest for good" },
		{ "without MIG",
		  { { ASK_APP, 1, 9000, 0, 10 } },
		  1,
		  "hami-core",
		  "spread",
		  "2/2 CardTypeMismatch for good" },
		{ "more than candidates, and no MIG wanted",
		  { { ASK_APP, 3, 9000, 0, 10 } },
		  1,
		  "hami-core",
		  "spread",
		  "NodeInsufficientDevice for good" },
		{ "all of a card", { { ASK_APP, 1, 0, 100, 100 } }, 1, NULL, "spread", "GPU-1,40320,100,7g.40gb@0:;" },
		{ "half a card", { { ASK_APP, 1, 0, 49, 0 } }, 1, NULL, "spread", "GPU-1,20096,43,3g.20gb@4:;" },
		{ "more memory than an instance has",
		  { { ASK_APP, 1, 40321, 0, 0 } },
		  1,
		  NULL,
		  "spread",
		  "2/2 CardMigTopologyInfeasible for good" },
		{ "all that would do, then the best",
		  { { ASK_APP, 8, 4000, 0, 0 } },
		  1,
		  NULL,
		  "topology-aware",
		  "GPU-1,4864,15,1g.5gb@6:GPU-1,4864,15,1g.5gb@5:GPU-1,4864,15,1g.5gb@4:GPU-1,4864,15,1g.5gb@3:"
		  "GPU-1,4864,15,1g.5gb@2:GPU-1,4864,15,1g.5gb@1:GPU-1,4864,15,1g.5gb@0:GPU-0,4864,15,1g.5gb@6:;" },
		{ "containers add up",
		  { { ASK_APP, 1, 20000, 0, 0 }, { ASK_APP, 1, 20000, 0, 0 } },
		  2,
		  NULL,
		  "binpack",
		  "GPU-1,20096,43,3g.20gb@4:;GPU-1,20096,43,3g.20gb@0:;" },
		{ "the instance of an ended container again",
		  { { ASK_INIT, 1, 20000, 0, 0 }, { ASK_APP, 1, 20000, 0, 0 } },
		  2,
		  NULL,
		  "binpack",
		  "GPU-1,20096,43,3g.20gb@4:;GPU-1,20096,43,3g.20gb@4:;" },
		{ "or one beside it",
		  { { ASK_INIT, 1, 20000, 0, 0 }, { ASK_APP, 1, 4000, 0, 0 } },
		  2,
		  NULL,
		  "binpack",
		  "GPU-1,20096,43,3g.20gb@4:;GPU-1,4864,15,1g.5gb@3:;" },
		{ "or another card's",
		  { { ASK_INIT, 1, 4000, 0, 0 }, { ASK_APP, 1, 30000, 0, 0 } },
		  2,
		  NULL,
		  "binpack",
		  "GPU-1,4864,15,1g.5gb@6:;GPU-0,40320,100,7g.40gb@0:;" },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts);

	(void)state;
	add_mig_card(n, 0);
	add_mig_card(n, 1);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_ask asks[2] = { cases[i].asks[0], cases[i].asks[1] };
		struct pod_ask ask = { .containers = asks,
				       .count = cases[i].count,
				       .wishes = { .mode = cases[i].mode } };

		expect(cases[i].what, n, &ask, cases[i].policy, NULL, cases[i].want);
	}
}

static void mig_beside_others(void **state)
{
	struct card_ask c = { ASK_APP, 1, 20000, 0, 0 };
	struct pod_ask ask = { .containers = &c, .count = 1 };
	struct quota_amount room = { 20095, QUOTA_NO_LIMIT };
	const struct mig_placement half = { 4, 4 };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts);

	(void)state;
	add_mig_card(n, 0);
	assert_int_equal(node_state_occupy(n, 0, half, NULL), 0);
	take(n, 0, 1, 20096, 43);
	expect_one("beside", n, (struct card_ask) { ASK_APP, 1, 20000, 0, 0 }, "spread", (struct pod_wishes) { 0 },
		   "GPU-0,20096,43,3g.20gb@0:;");
	expect("all of an instance is charged", n, &ask, "spread", &room, "1/1 ResourceQuotaNotFit");
	room.memory_mib = 20096;
	expect("and no more", n, &ask, "spread", &room, "GPU-0,20096,43,3g.20gb@0:;");
	expect_one("too large", n, (struct card_ask) { ASK_APP, 1, 20800, 0, 0 }, "spread", (struct pod_wishes) { 0 },
		   "1/1 CardMigTopologyInfeasible");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_containers_and_sidecars),
		cmocka_unit_test(quotas),
		cmocka_unit_test(topology_aware),
		cmocka_unit_test(the_best_numa_node),
		cmocka_unit_test(mig),
		cmocka_unit_test(mig_beside_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
