/* Who would have to go, on nodes by the line; afterwards all is as it was. */
#include "make_cluster.h"

#include "harness/sweep.h"
#include "model/placement/preempt.h"

enum { HELD = 8 };

struct held {
	const char *uid, *uuid;
	int32_t priority, memory_mib, cores;
	enum hold_state state;
	const char *name_space; /* NULL: "other" */
};

static int put_under(struct cluster *c, const char *node, const struct held *h, const char *labels, struct hm_err *e)
{
	struct hold_share share = { .uuid = h->uuid, .memory_mib = h->memory_mib, .cores = h->cores };
	struct hold hold = { .uid = h->uid,
			     .name_space = h->name_space != NULL ? h->name_space : "other",
			     .name = h->uid,
			     .node = node,
			     .state = h->state,
			     .priority = h->priority,
			     .shares = &share,
			     .share_count = 1,
			     .labels = labels };

	return cluster_hold(c, &hold, e);
}

static int put(struct cluster *c, const char *node, const struct held *h, struct hm_err *e)
{
	return put_under(c, node, h, NULL, e);
}

static struct cluster *two_cards(const struct held *held)
{
	struct cluster *c = cluster_new(1);
	struct hm_err e;

	put_node(c, &(struct made_node) { "n", 2, 10, 40000, 100, NULL });
	for (int i = 0; i < HELD && held[i].uid != NULL; i++)
		assert_int_equal(put(c, "n", &held[i], &e), 0);
	return c;
}

static void copy_used(const struct cluster *c, struct card_use out[2])
{
	memcpy(out, cluster_node(c, "n")->used, 2 * sizeof out[0]);
}

/* The victims' UIDs, with a blank between, and "!" behind those that violate a budget; "-": none can help, or none need
 * go. */
static const char *asked(struct cluster *c, const struct card_ask *container, int32_t priority,
			 const char *const *going, size_t going_count, char *out, size_t cap)
{
	struct pod_ask ask = { .uid = "asked",
			       .name_space = "ns",
			       .name = "asked",
			       .containers = (struct card_ask *)container,
			       .count = 1,
			       .priority = priority };
	hm_auto(preempt) *p = preempt_new();
	const struct preempt_victim *victims;
	struct card_use before[2], after[2];
	struct quota_amount room = quotas_room(cluster_quotas(c), "other");
	size_t n, at = 0;
	struct hm_err e;
	int r;

	copy_used(c, before);
	assert_int_equal(preempt_read(p, c, &ask, "spread", &e), 0);
	r = preempt_node(p, "n", going, going_count, &victims, &n, &e);
	copy_used(c, after);
	assert_memory_equal(before, after, sizeof before);
	assert_int_equal(room.memory_mib, quotas_room(cluster_quotas(c), "other").memory_mib);
	out[0] = '\0';
	for (size_t i = 0; r > 0 && i < n; i++)
		at += (size_t)snprintf(out + at, cap - at, "%s%s%s", i > 0 ? " " : "", victims[i].holding->uid,
				       victims[i].violates ? "!" : "");
	assert_true(r >= 0);
	return r > 0 ? out : "-";
}

static void fewest_of_the_lowest(void **state)
{
	static const struct {
		const char *what;
		struct held held[HELD];
		struct card_ask ask;
		int32_t priority;
		const char *going[2], *want;
	} rows[] = {
		{ "one of two is enough: the lower",
		  { { "low", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "mid", "n-1", 5, 30000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 20000 },
		  10,
		  { NULL },
		  "low" },
		{ "not of its own priority, nor above",
		  { { "same", "n-0", 10, 30000, 0, HOLD_BOUND, NULL },
		    { "over", "n-1", 11, 30000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 20000 },
		  10,
		  { NULL },
		  "-" },
		{ "one large one rather than three small ones",
		  { { "s1", "n-0", 1, 10000, 0, HOLD_BOUND, NULL },
		    { "s2", "n-0", 1, 10000, 0, HOLD_BOUND, NULL },
		    { "s3", "n-0", 1, 10000, 0, HOLD_BOUND, NULL },
		    { "large", "n-1", 1, 30000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 35000 },
		  2,
		  { NULL },
		  "large" },
		{ "both cards are wanted whole: all go, the highest first",
		  { { "a", "n-0", 1, 10000, 0, HOLD_BOUND, NULL },
		    { "b", "n-1", 3, 10000, 0, HOLD_BOUND, NULL },
		    { "c", "n-1", 2, 10000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 2, .percent = 100, .cores = 100 },
		  9,
		  { NULL },
		  "b c a" },
		{ "a promise cannot be evicted",
		  { { "b", "n-0", 0, 30000, 0, HOLD_BINDING, NULL }, { "r", "n-1", 0, 30000, 0, HOLD_RESERVED, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 20000 },
		  10,
		  { NULL },
		  "-" },
		{ "who is being deleted goes anyway: nobody else need",
		  { { "end", "n-0", 50, 30000, 0, HOLD_TERMINATING, NULL },
		    { "low", "n-1", 1, 30000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 20000 },
		  10,
		  { NULL },
		  "-" },
		{ "who goes for its CPU makes room for cards, too",
		  { { "cpu", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "low", "n-1", 0, 30000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 20000 },
		  10,
		  { "cpu", NULL },
		  "" },
		{ "who goes for its CPU does not help the cards",
		  { { "low", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "mid", "n-1", 2, 30000, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 20000 },
		  10,
		  { "no-cards", NULL },
		  "low" },
		{ "larger than any card",
		  { { "low", "n-0", 1, 100, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 50000 },
		  10,
		  { NULL },
		  "-" },
		{ "it fits as it is",
		  { { "low", "n-0", 1, 100, 0, HOLD_BOUND, NULL } },
		  { .kind = ASK_APP, .count = 1, .memory_mib = 100 },
		  10,
		  { NULL },
		  "-" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cluster) *c = two_cards(rows[i].held);
		char got[128];

		if (strcmp(asked(c, &rows[i].ask, rows[i].priority, rows[i].going, rows[i].going[0] != NULL, got,
				 sizeof got),
			   rows[i].want) != 0)
			fail_msg("%s: %s instead of %s", rows[i].what, got, rows[i].want);
	}
}

/* The namespace's quota counts as if they were not there. */
static void a_quota_is_freed_as_well(void **state)
{
	static const struct held held[HELD] = {
		{ "own", "n-0", 1, 5000, 0, HOLD_BOUND, "ns" },
		{ "other", "n-1", 0, 5000, 0, HOLD_BOUND, "other" },
	};
	const struct card_ask ask = { .kind = ASK_APP, .count = 1, .memory_mib = 4000 };
	hm_auto(cluster) *c = two_cards(held);
	struct hm_err e;
	char got[64];

	(void)state;
	assert_int_equal(quotas_set(cluster_quotas(c), "ns", "q", (struct quota_limits) { 6000, QUOTA_NO_LIMIT }, &e),
			 0);
	assert_string_equal(asked(c, &ask, 10, NULL, 0, got, sizeof got), "own");
	assert_int_equal(quotas_set(cluster_quotas(c), "ns", "q", (struct quota_limits) { 3000, QUOTA_NO_LIMIT }, &e),
			 0);
	assert_string_equal(asked(c, &ask, 10, NULL, 0, got, sizeof got), "-");
}

static void set_budget(struct cluster *c, const char *app, int64_t allowed, const char *disrupted)
{
	hm_auto_str selector = { 0 };
	const struct budget_terms terms = { &selector, allowed, disrupted };

	budget_add_demand(&selector, BUDGET_IN, "app");
	budget_add_value(&selector, app);
	assert_int_equal(budgets_set(cluster_budgets(c), "other", app, &terms, NULL), 0);
}

/* And no more are counted than there are. */
static void budgets_are_violated_last(void **state)
{
	static const struct {
		const char *what;
		struct held held[HELD];
		const char *app[HELD]; /* label of each */
		int64_t web, db;       /* what their budgets allow */
		const char *disrupted; /* of web's */
		uint32_t cards;
		const char *going[2], *want;
	} rows[] = {
		{ "who has no budget goes, though of a higher priority",
		  { { "low", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "mid", "n-1", 5, 30000, 0, HOLD_BOUND, NULL } },
		  { "web", "batch" },
		  0,
		  0,
		  "",
		  1,
		  { NULL },
		  "mid" },
		{ "a budget that allows it is none",
		  { { "low", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "mid", "n-1", 5, 30000, 0, HOLD_BOUND, NULL } },
		  { "web", "batch" },
		  1,
		  0,
		  "",
		  1,
		  { NULL },
		  "low" },
		{ "all must go: what is beyond the budget is counted",
		  { { "w1", "n-0", 1, 20000, 0, HOLD_BOUND, NULL },
		    { "w2", "n-1", 3, 20000, 0, HOLD_BOUND, NULL },
		    { "w3", "n-1", 2, 20000, 0, HOLD_BOUND, NULL } },
		  { "web", "web", "web" },
		  1,
		  0,
		  "",
		  2,
		  { NULL },
		  "w2! w3! w1" },
		{ "one of two may go: the lower",
		  { { "w1", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "w2", "n-1", 3, 30000, 0, HOLD_BOUND, NULL } },
		  { "web", "web" },
		  1,
		  0,
		  "",
		  1,
		  { NULL },
		  "w1" },
		{ "two of three may, and one must: the lowest two",
		  { { "w1", "n-0", 1, 30000, 0, HOLD_BOUND, NULL },
		    { "w2", "n-1", 2, 15000, 0, HOLD_BOUND, NULL },
		    { "w3", "n-1", 3, 15000, 0, HOLD_BOUND, NULL } },
		  { "web", "web", "web" },
		  2,
		  0,
		  "",
		  1,
		  { NULL },
		  "w1" },
		{ "it has to be the one that was beyond the budget; then the other is not",
		  { { "w1", "n-0", 1, 10000, 0, HOLD_BOUND, NULL },
		    { "w2", "n-1", 3, 30000, 0, HOLD_BOUND, NULL },
		    { "top", "n-0", 50, 20000, 0, HOLD_BOUND, NULL } },
		  { "web", "web", "top" },
		  1,
		  0,
		  "",
		  1,
		  { NULL },
		  "w2" },
		{ "who goes for its CPU has used the budget up",
		  { { "cpu", "n-0", 0, 30000, 0, HOLD_BOUND, NULL }, { "w2", "n-1", 2, 30000, 0, HOLD_BOUND, NULL } },
		  { "web", "web" },
		  1,
		  0,
		  "",
		  2,
		  { "cpu", NULL },
		  "w2!" },
		{ "who is being deleted was counted by the API server",
		  { { "end", "n-0", 0, 30000, 0, HOLD_TERMINATING, NULL },
		    { "w2", "n-1", 2, 30000, 0, HOLD_BOUND, NULL } },
		  { "web", "web" },
		  1,
		  0,
		  "",
		  2,
		  { NULL },
		  "w2" },
		{ "and so was who is named as disrupted",
		  { { "w1", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "w2", "n-1", 2, 30000, 0, HOLD_BOUND, NULL } },
		  { "web", "web" },
		  0,
		  0,
		  "w1\n",
		  1,
		  { NULL },
		  "w1" },
		{ "two budgets, two counts",
		  { { "d1", "n-0", 1, 30000, 0, HOLD_BOUND, NULL }, { "w1", "n-1", 2, 30000, 0, HOLD_BOUND, NULL } },
		  { "db", "web" },
		  1,
		  0,
		  "",
		  2,
		  { NULL },
		  "w1 d1!" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cluster) *c = two_cards((const struct held[HELD]) { { 0 } });
		const struct card_ask ask = { .kind = ASK_APP, .count = rows[i].cards, .memory_mib = 35000 };
		struct hm_err e;
		char got[128];

		set_budget(c, "web", rows[i].web, rows[i].disrupted);
		set_budget(c, "db", rows[i].db, "");
		for (int k = 0; k < HELD && rows[i].app[k] != NULL; k++) {
			hm_auto_str labels = { 0 };

			pod_labels_add(&labels, "app", rows[i].app[k]);
			assert_int_equal(put_under(c, "n", &rows[i].held[k], str_text(&labels), &e), 0);
		}
		if (strcmp(asked(c, &ask, 10, rows[i].going, rows[i].going[0] != NULL, got, sizeof got),
			   rows[i].want) != 0)
			fail_msg("%s: %s instead of %s", rows[i].what, got, rows[i].want);
	}
}

/* A namespace full of budgets, and pods full of labels: the first time not all nodes are answered, and each time more
 * of them. */
static void budgets_take_no_longer(void **state)
{
	enum { NODES = 40, BUDGETS = 2000, WORK = 2000000, A_CALL = BUDGETS_MAX_WORDS * POD_LABELS_MAX };
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 40000 };
	struct pod_ask ask = {
		.uid = "a", .name_space = "ns", .name = "a", .containers = &container, .count = 1, .priority = 9
	};
	hm_auto(preempt) *p = preempt_new();
	hm_auto_str labels = { 0 };
	const struct preempt_victim *victims;
	size_t n, helped[3] = { 0 };
	char name[32], uuid[32];
	struct hm_err e;

	(void)state;
	for (int i = 0; i < POD_LABELS_MAX; i++) {
		snprintf(name, sizeof name, "k%d", i);
		pod_labels_add(&labels, name, "v");
	}
	for (int i = 0; i < BUDGETS; i++) {
		snprintf(name, sizeof name, "b%d", i);
		set_budget(c, name, 0, "");
	}
	for (int i = 0; i < NODES; i++) {
		snprintf(name, sizeof name, "n%d", i);
		snprintf(uuid, sizeof uuid, "n%d-0", i);
		put_node(c, &(struct made_node) { name, 1, 10, 40000, 100, NULL });
		assert_int_equal(put_under(c, name, &(struct held) { name, uuid, 1, 4000, 0, HOLD_BOUND, NULL },
					   str_text(&labels), &e),
				 0);
	}
	for (int turn = 0; turn < 3; turn++) {
		uint64_t work = budgets_work(cluster_budgets(c));

		assert_int_equal(preempt_read(p, c, &ask, "spread", &e), 0);
		for (int i = 0; i < NODES; i++) {
			snprintf(name, sizeof name, "n%d", i);
			helped[turn] += (size_t)preempt_node(p, name, NULL, 0, &victims, &n, &e);
		}
		assert_in_range(budgets_work(cluster_budgets(c)) - work, 0, WORK + A_CALL);
	}
	assert_in_range(helped[0], 5, NODES - 1);
	assert_true(helped[1] > helped[0]);
	assert_int_equal(helped[2], NODES);
}

/* Budgets that name as many as may be: no request forgets that it has looked at them. */
static void disrupted_names_take_no_longer(void **state)
{
	enum { NODES = 40, PODS = 80, NAMES = 100, WORK = 2000000, A_CALL = BUDGETS_OF_A_POD * NAMES };
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 40000 };
	struct pod_ask ask = {
		.uid = "a", .name_space = "ns", .name = "a", .containers = &container, .count = 1, .priority = 9
	};
	hm_auto(preempt) *p = preempt_new();
	hm_auto_str names = { 0 };
	const struct preempt_victim *victims;
	size_t n, helped = 0;
	uint64_t work;
	struct hm_err e;

	(void)state;
	for (int i = 0; i < NAMES; i++)
		str_addf(&names, "gone-%d\n", i);
	for (int i = 0; i < BUDGETS_OF_A_POD; i++) {
		hm_auto_str selector = { 0 };
		char name[16];

		snprintf(name, sizeof name, "b%d", i);
		budget_add_demand(&selector, BUDGET_EXISTS, "app");
		assert_int_equal(budgets_set(cluster_budgets(c), "other", name,
					     &(struct budget_terms) { &selector, 0, str_text(&names) }, NULL),
				 0);
	}
	for (int i = 0; i < NODES; i++) {
		char node[16], uid[32], uuid[32];

		snprintf(node, sizeof node, "n%d", i);
		snprintf(uuid, sizeof uuid, "n%d-0", i);
		put_node(c, &(struct made_node) { node, 1, PODS, 40000, 100, NULL });
		for (int k = 0; k < PODS; k++) {
			snprintf(uid, sizeof uid, "%d-%d", i, k);
			assert_int_equal(put_under(c, node, &(struct held) { uid, uuid, 1, 500, 0, HOLD_BOUND, NULL },
						   "app=web\n", &e),
					 0);
		}
	}
	work = budgets_work(cluster_budgets(c));
	assert_int_equal(preempt_read(p, c, &ask, "spread", &e), 0);
	for (int i = 0; i < NODES; i++) {
		char node[16];

		snprintf(node, sizeof node, "n%d", i);
		helped += (size_t)preempt_node(p, node, NULL, 0, &victims, &n, &e);
	}
	work = budgets_work(cluster_budgets(c)) - work;
	assert_in_range(work, WORK, WORK + A_CALL);
	/* A node's pods are counted twice. */
	assert_in_range(helped, WORK / (2 * PODS * A_CALL) - 1, WORK / (2 * PODS * A_CALL));
}

/* Too many nodes full of pods: in the end no more are looked at. */
static void not_for_ever(void **state)
{
	enum { NODES = 300, PODS = 80 };
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 40000 };
	struct pod_ask ask = {
		.uid = "a", .name_space = "ns", .name = "a", .containers = &container, .count = 1, .priority = 9
	};
	hm_auto(preempt) *p = preempt_new();
	const struct preempt_victim *victims;
	size_t n, helped = 0;
	struct hm_err e;

	(void)state;
	for (int i = 0; i < NODES; i++) {
		char node[16];

		snprintf(node, sizeof node, "n%d", i);
		put_node(c, &(struct made_node) { node, 8, 10, 40000, 100, NULL });
		for (int k = 0; k < PODS; k++) {
			char uid[32], uuid[32];

			snprintf(uid, sizeof uid, "%s-%d", node, k);
			snprintf(uuid, sizeof uuid, "%s-%d", node, k / 10);
			assert_int_equal(put(c, node, &(struct held) { uid, uuid, 1, 4000, 0, HOLD_BOUND, NULL }, &e),
					 0);
		}
	}
	assert_int_equal(preempt_read(p, c, &ask, "spread", &e), 0);
	for (int i = 0; i < NODES; i++) {
		char node[16];

		snprintf(node, sizeof node, "n%d", i);
		helped += (size_t)preempt_node(p, node, NULL, 0, &victims, &n, &e);
	}
	assert_in_range(helped, 200, 299); /* of 81 tries each, 20,000 in all */
	assert_int_equal(preempt_read(p, c, &ask, "spread", &e), 0);
	assert_int_equal(preempt_node(p, "n299", NULL, 0, &victims, &n, &e), 1);
	assert_int_equal(n, 10);
}

static int ask_once(void *arg)
{
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 20000 };
	struct pod_ask ask = {
		.uid = "a", .name_space = "ns", .name = "a", .containers = &container, .count = 1, .priority = 9
	};
	hm_auto(preempt) *p = preempt_new();
	const struct preempt_victim *victims;
	struct hm_err e;
	size_t n;
	int r;

	if (p == NULL)
		return -HM_ENOMEM;
	r = preempt_read(p, arg, &ask, "spread", &e);
	return r < 0 ? r : HM_MIN(preempt_node(p, "n", NULL, 0, &victims, &n, &e), 0);
}

static void memory_runs_out(void **state)
{
	static const struct held held[HELD] = { { "low", "n-0", 1, 30000, 0, HOLD_BOUND, NULL },
						{ "mid", "n-1", 2, 30000, 0, HOLD_BOUND, NULL } };
	hm_auto(cluster) *c = two_cards(held);

	(void)state;
	sweep_check("preemption", ask_once, c);
	expect_used(c, "n", "1/30000/0 1/30000/0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewest_of_the_lowest),
		cmocka_unit_test(a_quota_is_freed_as_well),
		cmocka_unit_test(budgets_are_violated_last),
		cmocka_unit_test(budgets_take_no_longer),
		cmocka_unit_test(disrupted_names_take_no_longer),
		cmocka_unit_test(not_for_ever),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
