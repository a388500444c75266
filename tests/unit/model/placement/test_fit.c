/* HAMi's worked traces (four cards of one node), and what goes beyond them. */
#include "model/placement/fit.h"

#include "harness/sweep.h"
#include "make_mig.h"
#include "model/placement/fit_wishes.h"

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

/* ---- order */

static struct node_state *equal_cards(struct texts *texts, unsigned count)
{
	struct node_state *n = node_state_new("n1", texts);

	for (unsigned i = 0; i < count; i++)
		add_card(n, make_card(i));
	return n;
}

static void expect_many(const char *what, const struct node_state *n, struct card_ask *asks, size_t count,
			const char *policy, const char *want)
{
	struct pod_ask ask = { .containers = asks, .count = count };

	expect(what, n, &ask, policy, NULL, want);
}

/* Among equals the next container starts from the order that the one before it left. */
static void the_order_is_kept_between_containers(void **state)
{
	struct card_ask asks[3] = { { ASK_APP, 1, 1000, 0, 0 },
				    { ASK_APP, 1, 1000, 0, 0 },
				    { ASK_APP, 1, 1000, 0, 0 } };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = equal_cards(texts, 2);

	(void)state;
	expect_many("spread", n, asks, 3, "spread", "GPU-1,1000,0:;GPU-0,1000,0:;GPU-0,1000,0:;");
	expect_many("binpack", n, asks, 3, "binpack", "GPU-1,1000,0:;GPU-1,1000,0:;GPU-1,1000,0:;");
	asks[0].kind = asks[1].kind = ASK_INIT; /* each on its own: the annotation's order */
	expect_many("init", n, asks, 3, "spread", "GPU-1,1000,0:;GPU-1,1000,0:;GPU-1,1000,0:;");
	asks[1].count = 0;
	expect_many("nothing for one", n, asks, 3, "spread", "GPU-1,1000,0:;;GPU-1,1000,0:;");
}

/* Both cards are empty; with the pod on it the larger one is the emptier. */
static void the_request_counts_in_the_score(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts);
	struct node_card small = make_card(1);

	(void)state;
	small.memory_mib = 40960;
	add_card(n, make_card(0));
	add_card(n, small);
	expect_one("spread", n, (struct card_ask) { ASK_APP, 1, 20000, 0, 0 }, "spread", (struct pod_wishes) { 0 },
		   "GPU-0,20000,0:;");
	expect_one("binpack", n, (struct card_ask) { ASK_APP, 1, 20000, 0, 0 }, "binpack", (struct pod_wishes) { 0 },
		   "GPU-1,20000,0:;");
	expect_one("no weight for memory", n, (struct card_ask) { ASK_APP, 1, 20000, 0, 0 }, "spread",
		   (struct pod_wishes) { .weights = "slot=1,core=1,memory=0" }, "GPU-1,20000,0:;");
	expect_one("a part is a part", n, (struct card_ask) { ASK_APP, 1, 0, 50, 0 }, "spread",
		   (struct pod_wishes) { 0 }, "GPU-1,20480,0:;");
	expect_one("the pod's own policy", n, (struct card_ask) { ASK_APP, 1, 20000, 0, 0 }, "spread",
		   (struct pod_wishes) { .card_policy = "binpack" }, "GPU-1,20000,0:;");
	expect_one("bad weights", n, (struct card_ask) { ASK_APP, 1, 20000, 0, 0 }, "spread",
		   (struct pod_wishes) { .weights = "1" },
		   "invalid hami.io/device-scoring-weights annotation \"1\": expected slot, core, and memory weights");
}

static double lowest_index(void *arg, const struct node_state *n, size_t card, const struct card_use *used,
			   const struct card_ask *ask)
{
	(void)arg, (void)n, (void)used, (void)ask;
	return (double)card;
}

static void a_rank_of_the_caller(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = traced_node(texts);
	hm_auto(fitter) *f = fitter_new();
	hm_auto_grant g = { 0 };
	struct card_ask c = SOME(2);
	struct pod_ask ask = { .containers = &c, .count = 1 };
	struct refusal why;

	(void)state;
	assert_int_equal(fitter_read(f, &ask, "spread", NULL), 0);
	fitter_set_rank(f, lowest_index, NULL);
	assert_int_equal(fit_pod(f, n, &g, &why, NULL), 1);
	assert_int_equal(g.shares[0].card, 1); /* 0 is full */
	assert_int_equal(g.shares[1].card, 2);
}

/* ---- reasons */

static void reasons(void **state)
{
	static const struct {
		const char *what;
		struct node_card card; /* count, memory, cores; what is not 0 replaces */
		struct card_use used;
		struct card_ask ask;
		struct pod_wishes wishes;
		const char *policy, *want;
	} cases[] = {
		{ "blocked", { .blocked = 1 }, { 0 }, SOME(1), { 0 }, "spread", "1/1 CardNotHealth" },
		{ "cordoned", { .cordoned = true }, { 0 }, SOME(1), { 0 }, "spread", "1/1 CardCordoned for good" },
		{ "type",
		  { 0 },
		  { 0 },
		  SOME(1),
		  { .use_types = "H100, t4" },
		  "spread",
		  "1/1 CardTypeMismatch for good" },
		{ "type, any case",
		  { 0 },
		  { 0 },
		  SOME(1),
		  { .use_types = "H100, a100" },
		  "spread",
		  "GPU-0,20000,30:;" },
		{ "type, no word",
		  { 0 },
		  { 0 },
		  SOME(1),
		  { .use_types = "," },
		  "spread",
		  "1/1 CardTypeMismatch for good" },
		{ "type, blank",
		  { 0 },
		  { 0 },
		  SOME(1),
		  { .use_types = " ", .no_types = "" },
		  "spread",
		  "GPU-0,20000,30:;" },
		{ "not type",
		  { 0 },
		  { 0 },
		  SOME(1),
		  { .no_types = "x,SXM4" },
		  "spread",
		  "1/1 CardTypeMismatch for good" },
		{ "not type, no word", { 0 }, { 0 }, SOME(1), { .no_types = "," }, "spread", "GPU-0,20000,30:;" },
		{ "mode", { 0 }, { 0 }, SOME(1), { .mode = "mps" }, "spread", "1/1 CardTypeMismatch for good" },
		{ "mode, empty", { 0 }, { 0 }, SOME(1), { .mode = "" }, "spread", "1/1 CardTypeMismatch for good" },
		{ "modes", { 0 }, { 0 }, SOME(1), { .mode = "hami-core,mig" }, "spread", "GPU-0,20000,30:;" },
		{ "uuid", { 0 }, { 0 }, SOME(1), { .use_uuids = "GPU-1" }, "spread", "1/1 CardUuidMismatch for good" },
		{ "uuid among", { 0 }, { 0 }, SOME(1), { .use_uuids = "GPU-1, GPU-0" }, "spread", "GPU-0,20000,30:;" },
		{ "not uuid",
		  { 0 },
		  { 0 },
		  SOME(1),
		  { .no_uuids = "GPU-0" },
		  "spread",
		  "1/1 CardUuidMismatch for good" },
		{ "slots", { 0 }, { 10, 0, 0 }, SOME(1), { 0 }, "spread", "1/1 CardTimeSlicingExhausted" },
		{ "no slots ever",
		  { .count = -1 },
		  { 0 },
		  SOME(1),
		  { 0 },
		  "spread",
		  "1/1 CardTimeSlicingExhausted for good" },
		{ "mutex", { 0 }, { 1, 0, 0 }, SOME(1), { 0 }, "mutex,binpack", "1/1 ExclusiveDeviceAllocateConflict" },
		{ "memory", { 0 }, { 1, 61921, 0 }, SOME(1), { 0 }, "spread", "1/1 CardInsufficientMemory" },
		{ "memory, just", { 0 }, { 1, 61920, 0 }, SOME(1), { 0 }, "spread", "GPU-0,20000,30:;" },
		{ "more than there is",
		  { 0 },
		  { 0 },
		  { ASK_APP, 1, 81921, 0, 0 },
		  { 0 },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "cores", { 0 }, { 1, 0, 71 }, SOME(1), { 0 }, "spread", "1/1 CardInsufficientCore" },
		{ "cores, just", { 0 }, { 1, 0, 70 }, SOME(1), { 0 }, "spread", "GPU-0,20000,30:;" },
		{ "exclusive",
		  { 0 },
		  { 1, 1000, 0 },
		  { ASK_APP, 1, 1000, 0, 100 },
		  { 0 },
		  "spread",
		  "1/1 ExclusiveDeviceAllocateConflict" },
		{ "none is exclusive with scaled cores",
		  { .cores = 200 },
		  { 1, 1000, 0 },
		  { ASK_APP, 1, 1000, 0, 100 },
		  { 0 },
		  "spread",
		  "GPU-0,1000,100:;" },
		{ "cores are gone",
		  { 0 },
		  { 1, 1000, 100 },
		  { ASK_APP, 1, 1000, 0, 0 },
		  { 0 },
		  "spread",
		  "1/1 CardComputeUnitsExhausted" },
		{ "percent", { 0 }, { 0 }, { ASK_APP, 1, 0, 33, 0 }, { 0 }, "spread", "GPU-0,27033,0:;" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = node_state_new("n1", texts);
		struct node_card c = make_card(0);

		if (cases[i].card.count != 0)
			c.count = 0;
		if (cases[i].card.cores != 0)
			c.cores = cases[i].card.cores;
		add_card(n, c);
		n->cards[0].blocked = cases[i].card.blocked;
		n->cards[0].cordoned = cases[i].card.cordoned;
		take(n, 0, cases[i].used.slots, cases[i].used.memory_mib, cases[i].used.cores);
		expect_one(cases[i].what, n, cases[i].ask, cases[i].policy, cases[i].wishes, cases[i].want);
	}
}

static void only_the_refused_container_counts(void **state)
{
	struct card_ask asks[2] = { { ASK_INIT, 1, 81920, 0, 0 }, { ASK_APP, 2, 81920, 0, 0 } };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = traced_node(texts);

	(void)state;
	asks[1].count = 3;
	expect_many("init fits, the other does not", n, asks, 2, "binpack",
		    "2/4 AllocatedCardsInsufficientRequest, 2/4 CardInsufficientMemory");
}

static void other_vendors_are_no_candidates(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts), *empty = node_state_new("n2", texts);
	struct node_card other = make_card(1);

	(void)state;
	other.type = "Ascend910B";
	add_card(n, make_card(0));
	add_card(n, other);
	expect_one("two", n, (struct card_ask)SOME(2), "spread", (struct pod_wishes) { 0 },
		   "NodeInsufficientDevice for good");
	expect_one("one", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { 0 }, "GPU-0,20000,30:;");
	expect_one("none", empty, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { 0 },
		   "NodeInsufficientDevice for good");
}

static void long_lists(void **state)
{
	char list[WISHES_MAX_TYPES_BYTES + 2];
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = equal_cards(texts, 1);

	(void)state;
	memset(list, ',', sizeof list);
	memcpy(&list[sizeof list - 6], "A100", 5);
	expect_one("just", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = list },
		   "GPU-0,20000,30:;");
	memcpy(&list[sizeof list - 6], ",A100", 6);
	expect_one("use", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = list },
		   "annotation nvidia.com/use-gputype: is longer than 16384 bytes");
	expect_one("not", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .no_types = list },
		   "annotation nvidia.com/nouse-gputype: is longer than 16384 bytes");
}

/* More kinds of cards than are remembered. */
static void many_kinds(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts);

	(void)state;
	for (unsigned i = 0; i < 2 * WISHES_KINDS_KNOWN; i++) {
		struct node_card c = make_card(i);
		char type[32];

		snprintf(type, sizeof type, "NVIDIA <%u>", i);
		c.type = type;
		add_card(n, c);
	}
	expect_one("one of many", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = "<7>" },
		   "GPU-7,20000,30:;");
	expect_one("none of many", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = "<x>" },
		   "128/128 CardTypeMismatch for good");
}

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
		    "1/1 CardInsufficientMemory");
	asks[2].memory_mib = 1;
	asks[0].memory_mib = 81920;
	expect_many("one before the sidecar has the card alone", n, asks, 4, "spread",
		    "GPU-0,81920,60:;GPU-0,30000,30:;GPU-0,1,70:;GPU-0,50000,70:;");
	asks[3].cores = 71;
	expect_many("the app beside the sidecar", n, asks, 4, "spread", "1/1 CardInsufficientCore");
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
	for (size_t i = 0; i < HM_COUNT(pairs); i++) {
		assert_int_equal(node_state_set_pair_score(n, pairs[i].a, pairs[i].b, pairs[i].score, NULL), 0);
		assert_int_equal(node_state_set_pair_score(n, pairs[i].b, pairs[i].a, pairs[i].score, NULL), 0);
	}
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

/* ---- where memory is short */

static int fit_once(void *arg)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = texts == NULL ? NULL : node_state_new("n1", texts);
	hm_auto(fitter) *f = fitter_new();
	hm_auto_pod_ask ask = { .wishes = { .card_policy = "topology-aware", .use_uuids = "GPU-0", .no_uuids = "x" } };
	hm_auto_grant g = { 0 };
	struct card_profile profile = { .name = "1g.5gb", .memory_mib = 4864 };
	struct mig_placement places[7];
	struct node_card card = make_card(0);
	struct refusal why;
	struct hm_err e;

	(void)arg;
	card.mode = "mig";
	for (uint32_t i = 0; i < HM_COUNT(places); i++)
		places[i] = (struct mig_placement) { i, 1 };
	if (n == NULL || f == NULL || node_state_add_card(n, &card, &e) < 0 ||
	    node_state_add_profile(n, &profile, places, HM_COUNT(places), &e) < 0 ||
	    node_state_set_pair_score(n, "GPU-0", "GPU-0", 1, &e) < 0 || node_state_occupy(n, 0, places[3], &e) < 0 ||
	    pod_ask_add(&ask, &(struct card_ask) { ASK_APP, 5, 1000, 0, 0 }, &e) < 0 ||
	    fitter_read(f, &ask, "spread", &e) < 0)
		return -1;
	return fit_pod(f, n, &g, &why, &e) == 1 ? 0 : -1;
}

static void without_memory(void **state)
{
	(void)state;
	sweep_check("fit", fit_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_traces),
		cmocka_unit_test(the_order_is_kept_between_containers),
		cmocka_unit_test(the_request_counts_in_the_score),
		cmocka_unit_test(a_rank_of_the_caller),
		cmocka_unit_test(reasons),
		cmocka_unit_test(only_the_refused_container_counts),
		cmocka_unit_test(other_vendors_are_no_candidates),
		cmocka_unit_test(long_lists),
		cmocka_unit_test(many_kinds),
		cmocka_unit_test(init_containers_and_sidecars),
		cmocka_unit_test(quotas),
		cmocka_unit_test(topology_aware),
		cmocka_unit_test(the_best_numa_node),
		cmocka_unit_test(mig),
		cmocka_unit_test(mig_beside_others),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
