/* Small nodes whose fragmentation is counted by hand; a MiB is a milli of a card. */
#include "model/placement/fgd.h"

#include "make_node.h"
#include "model/placement/place.h"

static const struct fgd_weights only_f = { .fragment = 1000 };

/* Cards with so much free, one after another; 0 ends. */
static struct node_state *node_with(struct texts *texts, const char *name, const int *milli)
{
	struct node_state *n = node_state_new(name, texts);

	for (unsigned i = 0; milli[i] != 0; i++) {
		struct node_card c = make_card(i);

		c.memory_mib = 1000;
		add_card(n, c);
		if (milli[i] < 1000)
			take(n, i, 1, 1000 - milli[i], 0);
	}
	return n;
}

static void add(struct pod_mix *m, int32_t milli)
{
	struct hm_err e;

	assert_int_equal(pod_mix_add(m, &(struct mix_shape) { 1, { .memory_mib = milli } }, 1, &e), 0);
}

static void see(struct pod_mix *m, int32_t milli)
{
	struct hm_err e;

	assert_int_equal(pod_mix_see(m, &(struct mix_shape) { 1, { .memory_mib = milli } }, &e), 0);
}

/* In milli; *card: the first card of the grant. */
static int64_t cost_of(struct fgd *f, const struct node_state *n, uint32_t cards, int32_t milli, uint32_t *card)
{
	struct card_ask container = { ASK_APP, cards, milli, 0, 0 };
	struct pod_ask ask = { .uid = "u", .name_space = "s", .name = "p", .containers = &container, .count = 1 };
	hm_auto(fitter) *fitter = fitter_new();
	hm_auto_grant g = { 0 };
	struct refusal why;
	struct hm_err e;
	int64_t cost;

	fgd_begin(f, &ask);
	assert_int_equal(fitter_read(fitter, &ask, "spread", &e), 0);
	fitter_set_rank(fitter, fgd_order(f)->card_rank, f);
	assert_int_equal(fit_pod(fitter, n, &g, &why, &e), 1);
	assert_int_equal(fgd_node_cost(f, n, &g, &cost, &e), 0);
	if (card != NULL)
		*card = g.shares[0].card;
	assert_int_equal(cost % MEASURE_MILLI, 0);
	return cost / MEASURE_MILLI;
}

/* How fragmented the node is, by the mix as it is now. */
static int64_t measured(struct fgd *f, const struct node_state *n)
{
	struct hm_err e;
	int64_t got;

	fgd_begin(f, NULL);
	assert_int_equal(fgd_node_measure(f, n, &got, &e), 0);
	return got;
}

static void the_node_that_loses_least(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(node_state) *a = node_with(texts, "a", (int[]) { 300, 0 });
	hm_auto(node_state) *b = node_with(texts, "b", (int[]) { 500, 0 });
	hm_auto(node_state) *c = node_with(texts, "c", (int[]) { 1000, 300, 0 });

	(void)state;
	add(&mix, 300);
	add(&mix, 500);
	/* a: 300 was of no use to half of the pods, nothing is left */
	assert_int_equal(cost_of(f, a, 1, 300, NULL), -150);
	/* b: 500 served all, the 200 left serve none */
	assert_int_equal(cost_of(f, b, 1, 300, NULL), 200);
	/* c: as a, once its second card is chosen */
	assert_int_equal(cost_of(f, c, 1, 300, NULL), -150);
}

static void the_card_that_loses_least(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(node_state) *n = node_with(texts, "n", (int[]) { 1000, 600, 500, 1000, 0 });
	uint32_t card;

	(void)state;
	add(&mix, 500);
	add(&mix, 1000);
	cost_of(f, n, 1, 500, &card);
	assert_int_equal(card, 2); /* exactly; 600 would keep 100 for nobody */
	cost_of(f, n, 1, 100, &card);
	assert_int_equal(card, 1);
	cost_of(f, n, 1, 1000, &card);
	assert_true(card == 0 || card == 3);
	cost_of(f, n, 2, 500, &card);
	assert_int_equal(card, 2);
}

static void the_order_of_cards_does_not_matter(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(node_state) *a = node_with(texts, "a", (int[]) { 1000, 600, 250, 0 });
	hm_auto(node_state) *b = node_with(texts, "b", (int[]) { 250, 1000, 600, 0 });

	(void)state;
	add(&mix, 500);
	add(&mix, 1000);
	/* 500: 250 is lost; 1000: 850 are */
	assert_int_equal(measured(f, a), 550 * (int64_t)MEASURE_MILLI);
	assert_int_equal(measured(f, b), measured(f, a));
}

static void what_cannot_be_shared_does_not_count(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_with(texts, "n", (int[]) { 1000, 400, 0 });

	(void)state;
	assert_int_equal(card_free_milli(&n->cards[0], &n->used[0]), 1000);
	assert_int_equal(card_free_milli(&n->cards[1], &n->used[1]), 400);
	assert_int_equal(card_free_milli(&n->cards[0], &(struct card_use) { 1, 0, 0 }), 999);
	assert_int_equal(card_free_milli(&n->cards[0], &(struct card_use) { 1, 100, 70 }), 300);
	assert_int_equal(card_free_milli(&n->cards[0], &(struct card_use) { 10, 100, 0 }), 0);
	assert_int_equal(card_free_milli(&n->cards[0], &(struct card_use) { 2, 1200, 0 }), 0);
	n->cards[0].cordoned = true;
	n->cards[1].healthy = false;
	assert_int_equal(card_free_milli(&n->cards[0], &n->used[0]), 0);
	assert_int_equal(card_free_milli(&n->cards[1], &n->used[1]), 0);
}

/* The whole way; and where the CPU would be gone, cards left over are lost, too. */
static void as_a_policy(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(placer) *p = placer_new("fgd", "fgd");
	struct card_ask container = { ASK_APP, 1, 500, 0, 0 };
	struct pod_ask ask = { .uid = "u", .name_space = "s", .name = "p", .containers = &container, .count = 1 };
	struct place_request r = { .ask = &ask };
	struct place_result got;
	struct hm_err e;

	(void)state;
	add(&mix, 500);
	add(&mix, 1000);
	placer_set_policy(p, fgd_order(f));
	assert_int_equal(cluster_put_node(c, node_with(cluster_texts(c), "a", (int[]) { 1000, 1000, 0 }), &e), 0);
	assert_int_equal(cluster_put_node(c, node_with(cluster_texts(c), "b", (int[]) { 1000, 1000, 500, 0 }), &e), 0);
	assert_int_equal(place_pod(p, c, &r, &got, &e), 1);
	assert_string_equal(got.node->name, "b");
	assert_int_equal(got.grant->shares[0].card, 2);
	cluster_set_host(c, "a", (struct host_amount) { 4000, -1 });
	cluster_set_host(c, "b", (struct host_amount) { 4000, -1 });
	assert_int_equal(cluster_node(c, "b")->cpu_milli, 4000);
	/* All of b's CPU: what it keeps is lost to who needs CPU. */
	ask.cpu_milli = 4000;
	assert_int_equal(pod_mix_add(&mix, &(struct mix_shape) { 1, { .memory_mib = 1000 }, .cpu_milli = 1000 }, 2, &e),
			 0);
	cluster_set_host(c, "a", (struct host_amount) { 8000, -1 });
	assert_int_equal(place_pod(p, c, &r, &got, &e), 1);
	assert_string_equal(got.node->name, "a");
}

/* Many more kinds of cards than are kept: what one costs is the same each time. */
static void kinds_are_forgotten(void **state)
{
	hm_auto_pod_mix mix = { 0 };
	hm_auto(texts) *texts = texts_new();
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	struct node_state *nodes[600] = { NULL };

	(void)state;
	add(&mix, 500);
	for (size_t i = 0; i < HM_COUNT(nodes); i++) {
		struct node_card c = make_card(0);
		char type[32];

		snprintf(type, sizeof type, "NVIDIA %zu", i);
		c.type = type;
		c.memory_mib = 1000;
		nodes[i] = node_state_new("n", texts);
		add_card(nodes[i], c);
		take(nodes[i], 0, 1, 100 + (int)i % 400, 0);
	}
	/* Of what is free 500 is of use, and none after a pod of 450. */
	for (unsigned times = 0; times < 2; times++)
		for (size_t i = 0; i < HM_COUNT(nodes); i++)
			assert_int_equal(cost_of(f, nodes[i], 1, 450, NULL), 450 - (int)i % 400);
	for (size_t i = 0; i < HM_COUNT(nodes); i++)
		node_state_free(nodes[i]);
}

/* xorshift: the test's own dice. */
static uint32_t roll(uint32_t *dice, uint32_t below)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 17;
	*dice ^= *dice << 5;
	return *dice % below;
}

/* What the cache says is what is so: random nodes, many of them alike. */
static void the_cache_tells_the_truth(void **state)
{
	static const struct fgd_weights weights = { 700, 300, 700, -15000, 0, 0 };
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &weights);
	uint32_t dice = 42;

	(void)state;
	for (int32_t i = 1; i <= 10; i++)
		add(&mix, i * 100);
	fgd_begin(f, NULL);
	for (int round = 0; round < 4000; round++) {
		hm_auto(mix_table) *t = mix_table_new(&mix, make_card(0).type, 1000);
		int milli[5] = { 0 };
		uint16_t cards[4];
		hm_auto(node_state) *n = NULL;

		for (size_t i = 0; i < 4; i++) {
			milli[i] = 100 + (int)roll(&dice, 10) * 100;
			cards[i] = (uint16_t)milli[i];
		}
		n = node_with(texts, "n", milli);
		n->cpu_milli = (int64_t)roll(&dice, 3) * 1000;
		assert_int_equal(measured(f, n),
				 mix_table_measure(t, &(struct node_room) { cards, 4, n->cpu_milli, -1 }, &weights));
	}
}

/* A core and 1,024 MiB of which every pod wants all: below them the card is lost. */
static void the_host_counts_in_steps(void **state)
{
	static const struct fgd_weights weights = { .fragment = 1000, .balance = 1000 };
	static const struct {
		int64_t cpu_milli, host_mib, lost; /* in tenths of a milli */
	} hosts[] = {
		{ 1000, 1024, 10 }, { 1099, 1279, 10 }, { 999, 1024, 10009 }, { 1000, 1023, 10010 }, { -1, -1, 0 },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &weights);
	hm_auto(node_state) *n = node_with(texts, "n", (int[]) { 1000, 0 });
	struct hm_err e;

	(void)state;
	assert_int_equal(pod_mix_add(&mix, &(struct mix_shape) { 1, { .memory_mib = 1000 }, 1000, 1024 }, 1, &e), 0);
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		n->cpu_milli = hosts[i].cpu_milli;
		n->host_mib = hosts[i].host_mib;
		assert_int_equal((measured(f, n) * 10 + MEASURE_MILLI / 2) / MEASURE_MILLI, hosts[i].lost);
	}
}

static void it_learns(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(node_state) *n = node_with(texts, "n", (int[]) { 600, 0 });

	(void)state;
	assert_int_equal(measured(f, n) / MEASURE_MILLI, 600); /* knowing nothing, it keeps whole cards */
	for (int i = 0; i < 100; i++) {
		see(&mix, 600);
		fgd_begin(f, NULL);
	}
	assert_int_equal(measured(f, n), 0);
}

/* Of 600 free milli, half of the pods have use for 600, and all for 300. */
static void it_learns_when_the_mix_has_shifted(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(node_state) *n = node_with(texts, "n", (int[]) { 600, 0 });

	(void)state;
	for (int i = 0; i < MIX_WINDOW; i++)
		see(&mix, i % 2 == 0 ? 600 : 1000);
	assert_int_equal(measured(f, n) / MEASURE_MILLI, 300);
	/* The same again, and a sixteenth of it less one pod (of each place one that was 1000): as before. */
	for (int i = 0; i < 2 * MIX_WINDOW; i++) {
		fgd_begin(f, NULL);
		see(&mix,
		    i % 2 == 0 || (i > MIX_WINDOW && i / 2 % (MIX_WINDOW / 2) < MIX_WINDOW / 16 - 1) ? 600 : 1000);
	}
	assert_int_equal(mix.entries[0].weight, MIX_WINDOW / 2 + MIX_WINDOW / 16 - 1);
	assert_int_equal(measured(f, n) / MEASURE_MILLI, 300);
	/* One more. */
	for (int i = 0; i < MIX_WINDOW; i++) {
		see(&mix, i % 2 == 0 || i / 2 < MIX_WINDOW / 16 ? 600 : 1000);
		fgd_begin(f, NULL);
	}
	assert_int_equal(mix.entries[0].weight, MIX_WINDOW / 2 + MIX_WINDOW / 16);
	assert_int_equal(measured(f, n) * 16, 600 * 7 * (int64_t)MEASURE_MILLI); /* 7 of 16 have none */
}

/* Another shape in the place of one that is gone is another one. */
static void a_shape_in_anothers_place_is_new(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(node_state) *n = node_with(texts, "n", (int[]) { 600, 0 });

	(void)state;
	for (int i = 0; i < MIX_WINDOW; i++)
		see(&mix, 1000);
	see(&mix, 900);
	assert_int_equal(measured(f, n) / MEASURE_MILLI, 600);
	for (int i = 1; i < MIX_WINDOW; i++)
		see(&mix, 900);
	for (int i = 0; i < MIX_WINDOW; i++)
		see(&mix, 600);
	assert_int_equal(mix.count, 2);
	assert_int_equal(mix.entries[0].weight, MIX_WINDOW); /* as 1000 had, but for one */
	assert_int_equal(measured(f, n), 0);
}

static void a_pod_tried_again_counts_once(void **state)
{
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	struct card_ask container = { ASK_APP, 1, 300, 0, 0 };
	struct pod_ask ask = { .uid = "u", .containers = &container, .count = 1 };

	(void)state;
	fgd_see(f, &ask);
	fgd_sample(f, &ask);
	assert_int_equal(mix.seen, 0); /* the mix is given */
	fgd_learn(f, &mix);
	fgd_see(f, &ask);
	fgd_see(f, &ask);
	assert_int_equal(mix.seen, 1);
	ask.uid = "v";
	fgd_see(f, &ask);
	assert_int_equal(mix.seen, 2);
	assert_int_equal(mix.entries[0].weight, 2);
}

/* Whatever the policy; but a question about nodes that are only imagined is no pod. */
static void what_is_placed_is_learned_from(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &only_f);
	hm_auto(placer) *p = placer_new("binpack", "spread");
	struct card_ask container = { ASK_APP, 1, 500, 0, 0 };
	struct pod_ask ask = { .uid = "u", .name_space = "s", .name = "p", .containers = &container, .count = 1 };
	hm_auto(node_state) *imagined = node_with(cluster_texts(c), "a", (int[]) { 1000, 0 });
	const struct node_state *nodes[] = { imagined };
	const char *names[] = { "a" };
	struct place_request r = { .ask = &ask, .names = names, .count = 1, .nodes = nodes };
	struct place_result got;
	struct hm_err e;

	(void)state;
	fgd_learn(f, &mix);
	placer_set_policy(p, fgd_order(f));
	assert_int_equal(place_pod(p, c, &r, &got, &e), 1);
	assert_int_equal(mix.seen, 0);
	r.nodes = NULL;
	assert_int_equal(place_pod(p, c, &r, &got, &e), 0); /* there is no such node: it came all the same */
	assert_int_equal(mix.seen, 1);
}

static void steps_make_near_ones_equal(void **state)
{
	static const struct fgd_weights coarse = { .fragment = 1000, .step = 100, .blind_step = 1000 };
	hm_auto(texts) *texts = texts_new();
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &coarse);
	struct card_ask container = { ASK_APP, 1, 300, 0, 0 };
	struct pod_ask ask = { .uid = "u", .name_space = "s", .name = "p", .containers = &container, .count = 1 };
	struct card_share share = { .container = 0, .card = 0, .memory_mib = 300, .profile = NO_PROFILE };
	struct grant g = { &share, 1, 1 };
	/* 300 less is lost, 300 less, 700 more */
	static const int free_milli[][2] = { { 340, 0 }, { 540, 0 }, { 1000, 0 } };
	static const int64_t seen[] = { -300, -300, 700 }, blind[] = { 0, 0, 1000 };
	struct hm_err e;
	int64_t cost;

	(void)state;
	add(&mix, 1000);
	for (size_t i = 0; i < 3; i++) {
		hm_auto(node_state) *n = node_with(texts, "n", free_milli[i]);

		fgd_begin(f, &ask);
		assert_int_equal(fgd_node_cost(f, n, &g, &cost, &e), 0);
		assert_int_equal(cost, blind[i] * MEASURE_MILLI);
		n->cpu_milli = 1000;
		fgd_begin(f, &ask);
		assert_int_equal(fgd_node_cost(f, n, &g, &cost, &e), 0);
		assert_int_equal(cost, seen[i] * MEASURE_MILLI);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_node_that_loses_least),
		cmocka_unit_test(the_card_that_loses_least),
		cmocka_unit_test(the_order_of_cards_does_not_matter),
		cmocka_unit_test(what_cannot_be_shared_does_not_count),
		cmocka_unit_test(as_a_policy),
		cmocka_unit_test(the_cache_tells_the_truth),
		cmocka_unit_test(the_host_counts_in_steps),
		cmocka_unit_test(kinds_are_forgotten),
		cmocka_unit_test(it_learns),
		cmocka_unit_test(it_learns_when_the_mix_has_shifted),
		cmocka_unit_test(a_shape_in_anothers_place_is_new),
		cmocka_unit_test(a_pod_tried_again_counts_once),
		cmocka_unit_test(what_is_placed_is_learned_from),
		cmocka_unit_test(steps_make_near_ones_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
