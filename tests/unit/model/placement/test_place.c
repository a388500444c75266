#include "make_cluster.h"

#include "harness/sweep.h"
#include "model/placement/place.h"

struct fixture {
	struct cluster *c;
	struct placer *p;
};

/* Three nodes of two cards; the fuller of them in the middle of the alphabet. */
static struct fixture three(const char *node_policy)
{
	struct fixture f = { cluster_new(1), placer_new(node_policy, "spread") };
	static const char *const names[] = { "n3", "n1", "n2" };

	for (size_t i = 0; i < HM_COUNT(names); i++)
		put_node(f.c, &(struct made_node) { names[i], 2, 4, 40000, 100, NULL });
	return f;
}

static void end(struct fixture *f)
{
	placer_free(f->p);
	cluster_free(f->c);
}

static struct pod_ask ask_of(struct card_ask *container, const char *uid)
{
	return (struct pod_ask) { .uid = uid, .name_space = "ns", .name = uid, .containers = container, .count = 1 };
}

static const char *place(struct fixture *f, const struct pod_ask *ask, const char *const *names, size_t n,
			 struct place_result *out)
{
	struct hm_err e;
	int r = place_pod(f->p, f->c, &(struct place_request) { .ask = ask, .names = names, .count = n }, out, &e);

	if (r < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(r, out->node != NULL);
	return out->node != NULL ? out->node->name : "";
}

static void place_and_reserve(struct fixture *f, const char *uid, const char *want, int32_t memory_mib)
{
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = memory_mib, .cores = 10 };
	struct pod_ask ask = ask_of(&container, uid);
	struct place_result r;
	struct hm_err e;

	assert_string_equal(place(f, &ask, NULL, 0, &r), want);
	if (want[0] != '\0')
		assert_int_equal(cluster_reserve(f->c, &ask, r.node->name, r.grant, 1000, &e), 0);
}

static void binpack_fills_and_spread_levels(void **state)
{
	static const struct {
		const char *policy, *nodes[4];
	} rows[] = {
		{ "binpack", { "n1", "n1", "n1", "n1" } },
		{ NULL, { "n1", "n1", "n1", "n1" } },
		{ "no such policy", { "n1", "n1", "n1", "n1" } },
		{ "spread", { "n1", "n2", "n3", "n1" } },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct fixture f = three(rows[i].policy);
		for (size_t k = 0; k < 4; k++)
			place_and_reserve(&f, (const char *[]) { "a", "b", "c", "d" }[k], rows[i].nodes[k], 1000);
		end(&f);
	}
}

static void the_pods_wish_comes_before_the_default(void **state)
{
	struct fixture f = three("binpack");
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 1000 };
	struct pod_ask ask = ask_of(&container, "b");
	struct place_result r;

	(void)state;
	place_and_reserve(&f, "a", "n1", 1000);
	assert_string_equal(place(&f, &ask, NULL, 0, &r), "n1");
	ask.wishes.node_policy = "spread";
	assert_string_equal(place(&f, &ask, NULL, 0, &r), "n2");
	end(&f);
}

/* When a node is full the next fullest follows; names decide among equal ones, whatever their order in the request. */
static void the_best_that_fits_wins(void **state)
{
	struct fixture f = three("binpack");
	static const char *const orders[][3] = { { "n1", "n2", "n3" }, { "n3", "n2", "n1" }, { "n2", "n3", "n1" } };
	struct card_ask container = { .kind = ASK_APP, .count = 2, .memory_mib = 30000 };
	struct pod_ask ask = ask_of(&container, "b");
	struct place_result r;

	(void)state;
	place_and_reserve(&f, "a", "n1", 20000);
	for (size_t i = 0; i < HM_COUNT(orders); i++) {
		assert_string_equal(place(&f, &ask, orders[i], 3, &r), "n2");
		assert_int_equal(r.refused_count, 1);
		assert_string_equal(r.refused[0].name, "n1");
		assert_int_equal(r.grant->count, 2);
	}
	end(&f);
}

static void refusals_are_counted_for_each_node(void **state)
{
	struct fixture f = three("binpack");
	static const char *const names[] = { "n2", "unknown", "n1" };
	struct card_ask container = { .kind = ASK_APP, .count = 2, .memory_mib = 30000 };
	struct pod_ask ask = ask_of(&container, "b");
	struct place_result r;
	size_t seen = 0;

	(void)state;
	place_and_reserve(&f, "a", "n1", 20000);
	cluster_cordon_node(f.c, "n2", "n2-0,n2-1");
	assert_string_equal(place(&f, &ask, names, 3, &r), "");
	assert_int_equal(r.refused_count, 3);
	for (size_t i = 0; i < r.refused_count; i++) {
		const struct refused_node *n = &r.refused[i];
		hm_auto_str text = { 0 };
		refusal_write(&n->why, &text);
		if (n->unregistered) {
			assert_string_equal(n->name, "unknown");
			assert_true(n->why.unresolvable);
		} else if (strcmp(n->name, "n1") == 0) {
			assert_string_equal(str_text(&text),
					    "1/2 AllocatedCardsInsufficientRequest, 1/2 CardInsufficientMemory");
			assert_false(n->why.unresolvable);
		} else {
			assert_string_equal(n->name, "n2");
			assert_string_equal(str_text(&text), "2/2 CardCordoned");
			assert_true(n->why.unresolvable);
		}
		seen++;
	}
	assert_int_equal(seen, 3);
	assert_string_equal(place(&f, &ask, names, 0, &r), "");
	assert_int_equal(r.refused_count, 0);
	end(&f);
}

static void a_pod_asked_again_gives_its_reservation_up(void **state)
{
	struct fixture f = three("binpack");
	struct card_ask container = { .kind = ASK_APP, .count = 2, .memory_mib = 30000 };
	struct pod_ask ask = ask_of(&container, "a");
	struct place_result r;
	struct hm_err e;

	(void)state;
	place_and_reserve(&f, "a", "n1", 20000);
	assert_string_equal(place(&f, &ask, NULL, 0, &r), "n1"); /* where its own share would be in the way */
	expect_used(f.c, "n1", "0/0/0 0/0/0");
	place_and_reserve(&f, "a", "n1", 20000);
	assert_int_equal(cluster_confirm(f.c, "a", "n1", &e), 0);
	assert_int_equal(place_pod(f.p, f.c, &(struct place_request) { .ask = &ask }, &r, &e), -HM_EEXIST);
	expect_used(f.c, "n1", "0/0/0 1/20000/10");
	end(&f);
}

static void a_what_if_changes_nothing(void **state)
{
	struct fixture f = three("binpack");
	struct node_state *template = make_node(f.c, &(struct made_node) { "t", 4, 4, 40000, 100, NULL });
	struct node_state *stale = make_node(f.c, &(struct made_node) { "n1", 4, 4, 40000, 100, NULL });
	const char *const names[] = { "n1", "t", "u" };
	const struct node_state *const nodes[] = { stale, template, NULL };
	struct card_ask container = { .kind = ASK_APP, .count = 2, .memory_mib = 30000 };
	struct pod_ask ask = ask_of(&container, "b");
	struct place_request request = { .ask = &ask, .names = names, .count = 3, .nodes = nodes };
	struct place_result r;
	struct hm_err e;

	(void)state;
	place_and_reserve(&f, "a", "n1", 20000);
	assert_int_equal(place_pod(f.p, f.c, &request, &r, &e), 1);
	assert_ptr_equal(r.node, template); /* n1 as it is, with what is on it; not as the request has it */
	assert_int_equal(r.refused_count, 2);
	expect_used(f.c, "n1", "0/0/0 1/20000/10");
	node_state_free(template);
	node_state_free(stale);
	end(&f);
}

/* It may go where it is: neither the card nor the quota has room for it twice. */
static void a_what_if_of_a_pod_that_has_its_share(void **state)
{
	static const char *const names[] = { "n1" };
	static const struct node_state *const nodes[] = { NULL };
	static const enum hold_state states[] = { HOLD_RESERVED, HOLD_BINDING, HOLD_BOUND };
	struct card_ask container = { .kind = ASK_APP, .count = 2, .memory_mib = 30000 };
	struct pod_ask ask = ask_of(&container, "a");
	struct place_request request = { .ask = &ask, .names = names, .count = 1, .nodes = nodes };
	struct place_result r;
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(states); i++) {
		struct fixture f = three("binpack");
		uint64_t print;

		assert_int_equal(
			quotas_set(cluster_quotas(f.c), "ns", "q", (struct quota_limits) { 60000, QUOTA_NO_LIMIT }, &e),
			0);
		place_and_reserve(&f, "a", "n1", 20000);
		if (states[i] != HOLD_RESERVED)
			assert_int_equal(cluster_confirm(f.c, "a", "n1", &e), 0);
		if (states[i] == HOLD_BOUND)
			cluster_bound(f.c, "a");
		print = cluster_node(f.c, "n1")->print;
		assert_int_equal(place_pod(f.p, f.c, &request, &r, &e), 1);
		assert_string_equal(r.node->name, "n1");
		assert_true(r.score == 0); /* without the pod */
		ask.wishes.weights = "no weights";
		assert_int_equal(place_pod(f.p, f.c, &request, &r, &e), -HM_EINVAL);
		ask.wishes.weights = NULL;
		assert_int_equal(cluster_find(f.c, "a")->state, states[i]);
		expect_used(f.c, "n1", "0/0/0 1/20000/10");
		assert_true(cluster_node(f.c, "n1")->print == print);
		assert_int_equal(quotas_room(cluster_quotas(f.c), "ns").memory_mib, 40000);
		end(&f);
	}
}

static void the_quota_of_the_namespace_counts(void **state)
{
	struct fixture f = three("binpack");
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 5000, .cores = 20 };
	struct pod_ask ask = ask_of(&container, "b");
	struct place_result r;
	struct hm_err e;
	static const struct {
		int64_t memory, cores;
		const char *node;
	} rows[] = {
		{ 6000, QUOTA_NO_LIMIT, "n1" },
		{ 5999, QUOTA_NO_LIMIT, "" },
		{ QUOTA_NO_LIMIT, 30, "n1" },
		{ QUOTA_NO_LIMIT, 29, "" },
		{ QUOTA_NO_LIMIT, QUOTA_NO_LIMIT, "n1" },
	};

	(void)state;
	place_and_reserve(&f, "a", "n1", 1000);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		assert_int_equal(quotas_set(cluster_quotas(f.c), "ns", "q",
					    (struct quota_limits) { rows[i].memory, rows[i].cores }, &e),
				 0);
		assert_string_equal(place(&f, &ask, NULL, 0, &r), rows[i].node);
		if (rows[i].node[0] == '\0')
			assert_int_equal(r.refused[0].why.counts[REASON_QUOTA], 2);
	}
	end(&f);
}

/* ---- a policy of the caller's */

static double by_last_letter(void *arg, const struct node_state *n, const struct pod_ask *ask, const struct grant *g)
{
	size_t *asked = arg;

	(void)ask;
	assert_int_equal(g->count, 1);
	(*asked)++;
	return n->name[1] == '2' ? -1 : 1;
}

static double first_card(void *arg, const struct node_state *n, size_t card, const struct card_use *used,
			 const struct card_ask *ask)
{
	(void)arg, (void)n, (void)used, (void)ask;
	return card == 0 ? -1 : 0; /* HAMi begins with the last */
}

static void a_policy_of_ones_own_ranks_nodes_and_cards(void **state)
{
	struct fixture f = three("mine");
	size_t asked = 0;
	struct node_order mine = { "mine", NULL, by_last_letter, first_card, &asked };
	struct card_ask container = { .kind = ASK_APP, .count = 1, .memory_mib = 1000 };
	struct pod_ask ask = ask_of(&container, "a");
	struct place_result r;

	(void)state;
	placer_set_policy(f.p, &mine);
	ask.wishes.card_policy = "mine";
	assert_string_equal(place(&f, &ask, NULL, 0, &r), "n2");
	assert_int_equal(asked, 3);
	assert_int_equal(r.grant->shares[0].card, 0);
	ask.wishes.node_policy = "binpack";
	assert_string_equal(place(&f, &ask, NULL, 0, &r), "n1");
	assert_int_equal(r.grant->shares[0].card, 0);
	assert_int_equal(asked, 3);
	end(&f);
}

static double of_high_numbers(void *arg, const struct node_state *n, const struct pod_ask *ask, const struct grant *g)
{
	(void)arg, (void)ask, (void)g;
	return -(double)n->name[1];
}

/* 12,870 ways to take eight of sixteen cards, on more nodes than can be looked at so closely: those of the chosen node
 * are the best all the same. Joined best are 0 and 1 alone, and 4 to 11 together. */
static void joined_cards_of_many_nodes(void **state)
{
	static const char *const names[] = { "na", "nb", "nc", "nd", "ne", "nf", "ng", "nh", "ni", "nj", "nk", "nl" };
	struct node_order mine = { "mine", NULL, of_high_numbers, NULL, NULL };
	struct fixture f = { cluster_new(1), placer_new("mine", "topology-aware") };
	struct card_ask container = { .kind = ASK_APP, .count = 8, .memory_mib = 1000, .cores = 1 };
	struct pod_ask ask = ask_of(&container, "a");
	struct place_result r;

	(void)state;
	placer_set_policy(f.p, &mine);
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		struct node_state *n = make_node(f.c, &(struct made_node) { names[i], 16, 10, 40000, 100, NULL });
		struct hm_err e;

		for (unsigned a = 0; a < 16; a++)
			for (unsigned b = 0; b < 16; b++) {
				int32_t score = a + b == 1 ? 100 : a >= 4 && b >= 4 && a < 12 && b < 12 ? 90 : 0;
				if (a != b)
					assert_int_equal(node_state_set_pair_score(n, a, b, score, &e), 0);
			}
		assert_int_equal(cluster_put_node(f.c, n, &e), 0);
	}
	assert_string_equal(place(&f, &ask, names, HM_COUNT(names), &r), "nl");
	assert_int_equal(r.grant->count, 8);
	for (size_t i = 0; i < r.grant->count; i++)
		assert_in_range(r.grant->shares[i].card, 4, 11);
	end(&f);
}

/* HAMi's example: two cards of ten slots, 100 cores and 81920 MiB, with 2/60/30000 and 1/30/20000 taken. */
static void the_score_is_hamis(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct node_state *n = make_node(c, &(struct made_node) { "n", 2, 10, 81920, 100, NULL });
	struct node_state *none = make_node(c, &(struct made_node) { "n", 2, 10, 81920, 0, NULL });

	(void)state;
	node_state_take(n, 0, &(struct card_use) { 2, 30000, 60 });
	node_state_take(n, 1, &(struct card_use) { 1, 20000, 30 });
	assert_true(node_score(n) > 9.0517 && node_score(n) < 9.0518); /* 10 * (3/20 + 90/200 + 50000/163840) */
	node_state_take(none, 0, &(struct card_use) { 2, 30000, 60 });
	assert_true(node_score(none) == 0);
	node_state_free(n);
	node_state_free(none);
}

static int scenario(void *arg)
{
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto(placer) *p = placer_new("binpack", "spread");
	static const char *const names[] = { "n1", "n2", "x" };
	struct card_ask container = { .kind = ASK_APP, .count = 2, .memory_mib = 1000 };
	struct pod_ask ask = ask_of(&container, "a");
	struct place_result r;
	struct hm_err e;

	(void)arg;
	if (c == NULL || p == NULL)
		return -HM_ENOMEM;
	for (int i = 1; i <= 2; i++) {
		struct node_state *n = make_node(c, &(struct made_node) { names[i - 1], i, 4, 40000, 100, NULL });
		if (n == NULL)
			return -HM_ENOMEM;
		if (cluster_put_node(c, n, &e) < 0)
			return -HM_ENOMEM;
	}
	if (place_pod(p, c, &(struct place_request) { .ask = &ask, .names = names, .count = 3 }, &r, &e) < 0)
		return -HM_ENOMEM;
	assert_string_equal(r.node->name, "n2");
	return cluster_reserve(c, &ask, "n2", r.grant, 1, &e);
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	sweep_check("place", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binpack_fills_and_spread_levels),
		cmocka_unit_test(the_pods_wish_comes_before_the_default),
		cmocka_unit_test(the_best_that_fits_wins),
		cmocka_unit_test(refusals_are_counted_for_each_node),
		cmocka_unit_test(a_pod_asked_again_gives_its_reservation_up),
		cmocka_unit_test(a_what_if_changes_nothing),
		cmocka_unit_test(a_what_if_of_a_pod_that_has_its_share),
		cmocka_unit_test(the_quota_of_the_namespace_counts),
		cmocka_unit_test(a_policy_of_ones_own_ranks_nodes_and_cards),
		cmocka_unit_test(joined_cards_of_many_nodes),
		cmocka_unit_test(the_score_is_hamis),
		cmocka_unit_test(survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
