/* Which card a container gets, and why it gets none: HAMi's worked traces (four cards of one node), and what goes
 * beyond them. */
#include "model/placement/fit.h"

#include "harness/sweep.h"
#include "make_fit.h"
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
	for (size_t i = 0; i < 2 * WISHES_MAX_TYPES; i += 2)
		memcpy(&list[i], "x,", 2);
	memcpy(&list[2 * (size_t)WISHES_MAX_TYPES - 2], "A100", 5);
	expect_one("just", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = list },
		   "GPU-0,20000,30:;");
	memcpy(&list[2 * (size_t)WISHES_MAX_TYPES - 2], "x,A100", 7);
	expect_one("use", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = list },
		   "annotation nvidia.com/use-gputype: has more than 128 words");
}

/* As many kinds of cards as places to remember them at: some share one. */
static void many_kinds(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts);

	(void)state;
	for (unsigned i = 0; i < NODE_MAX_CARDS; i++) {
		struct node_card c = make_card(i);
		char type[32];

		snprintf(type, sizeof type, "NVIDIA <%u>", i);
		c.type = type;
		add_card(n, c);
	}
	expect_one("one of many", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = "<7>" },
		   "GPU-7,20000,30:;");
	expect_one("none of many", n, (struct card_ask)SOME(1), "spread", (struct pod_wishes) { .use_types = "<x>" },
		   "1024/1024 CardTypeMismatch for good");
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
	    node_state_set_pair_score(n, 0, 0, 1, &e) < 0 || node_state_occupy(n, 0, places[3], &e) < 0 ||
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
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
