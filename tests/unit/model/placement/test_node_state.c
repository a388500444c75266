/* A node's book: what comes goes again, and what is wrong is refused. */
#include "model/placement/node_state.h"

#include "make_mig.h"

static void cards(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	struct node_card twice = make_card(1), negative = make_card(7), other = make_card(8);
	struct hm_err e;

	(void)state;
	add_card(n, make_card(0));
	add_card(n, make_card(1));
	assert_int_equal(node_state_add_card(n, &twice, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "card GPU-1 is there twice");
	negative.cores = -1;
	assert_int_equal(node_state_add_card(n, &negative, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "card GPU-7: a negative amount");
	other.type = "Ascend910B";
	add_card(n, other);
	assert_true(n->cards[0].nvidia && n->cards[1].nvidia && !n->cards[2].nvidia);
	assert_ptr_equal(n->cards[0].type, n->cards[1].type);
	assert_int_equal(node_state_find(n, "GPU-8"), 2);
	assert_int_equal(node_state_find(n, "GPU-7"), NODE_NO_CARD);
	assert_int_equal(n->totals.all.memory_mib, 3 * 81920);
	assert_int_equal(n->totals.all.slots, 30);
}

static void too_many_cards(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	struct node_card one = make_card(NODE_MAX_CARDS);

	(void)state;
	for (unsigned i = 0; i < NODE_MAX_CARDS; i++)
		add_card(n, make_card(i));
	assert_int_equal(node_state_add_card(n, &one, NULL), -HM_ELIMIT);
}

/* A node that writes new types again and again leaves none of the old ones behind; modes that are known are no types.
 */
static void texts_go_with_the_node(void **state)
{
	hm_auto(texts) *texts = texts_new();
	struct node_state *n = node_state_new("n", texts);
	struct node_card odd = make_card(0), twice = make_card(0);
	const char *kept[3] = { NULL };
	size_t at = 0, count = 0;

	(void)state;
	odd.type = "NVIDIA-1";
	odd.mode = "some day's";
	add_card(n, odd);
	add_card(n, make_card(1));
	twice.type = "NVIDIA-2";
	assert_int_equal(node_state_add_card(n, &twice, NULL), -HM_EINVAL);
	while (count < HM_COUNT(kept) && texts_next(texts, &at, &kept[count]))
		count++;
	assert_int_equal(count, 3);
	assert_string_equal(kept[0], "NVIDIA-1");
	assert_string_equal(kept[1], "some day's");
	assert_string_equal(kept[2], make_card(1).type);
	assert_false(texts_next(texts, &at, kept));
	node_state_free(n);
	at = 0;
	assert_false(texts_next(texts, &at, kept));
}

static void cordon(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		add_card(n, make_card(i));
	node_state_cordon(n, " GPU-0, ,GPU-2,GPU-9");
	assert_true(n->cards[0].cordoned && !n->cards[1].cordoned && n->cards[2].cordoned);
	node_state_cordon(n, "GPU-1");
	assert_true(!n->cards[0].cordoned && n->cards[1].cordoned && !n->cards[2].cordoned);
	node_state_cordon(n, NULL);
	assert_false(n->cards[1].cordoned);
}

static void holders(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	const struct card_use a = { 1, 3000, 30 }, b = { 2, 500, 0 };

	(void)state;
	add_card(n, make_card(0));
	add_card(n, make_card(1));
	node_state_take(n, 1, &a);
	node_state_take(n, 1, &b);
	node_state_take(n, 0, &a);
	assert_int_equal(n->used[1].slots, 3);
	assert_int_equal(n->used[1].memory_mib, 3500);
	assert_int_equal(n->totals.used.memory_mib, 6500);
	node_state_give(n, 1, &a);
	node_state_give(n, 0, &a);
	assert_memory_equal(&n->used[1], &b, sizeof b);
	assert_memory_equal(&n->totals.used, &b, sizeof b);
}

/* Two of the pod's containers, one after the other, share slices: they are free when both have left them. */
static void slices(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	const struct mig_placement low = { 0, 2 }, half = { 0, 4 }, beyond = { 60, 5 }, empty = { 3, 0 },
				   all = { 0, 64 };

	(void)state;
	add_mig_card(n, 0);
	add_mig_card(n, 1);
	assert_int_equal(node_state_occupy(n, 1, low, NULL), 0);
	assert_int_equal(node_state_occupy(n, 1, half, NULL), 0);
	assert_int_equal(node_state_occupy(n, 1, beyond, NULL), 0);
	assert_int_equal(node_state_occupy(n, 1, empty, NULL), 0);
	assert_true(n->cards[0].busy == 0 && n->cards[1].busy == 0x0f);
	node_state_vacate(n, 1, half);
	assert_true(n->cards[1].busy == 0x03);
	node_state_vacate(n, 1, beyond);
	node_state_vacate(n, 1, low);
	assert_true(n->cards[1].busy == 0);
	assert_true(mig_place_bits(all) == UINT64_MAX);
	assert_true(mig_place_bits((struct mig_placement) { 63, 1 }) == (uint64_t)1 << 63);
	assert_true(mig_place_bits((struct mig_placement) { UINT32_MAX, 2 }) == 0);
	assert_true(mig_place_bits((struct mig_placement) { 2, UINT32_MAX }) == 0);
}

static void profiles_in_order(void **state)
{
	static const char *const names[] = { "1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb" };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	add_mig_card(n, 0);
	add_mig_card(n, 1);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < HM_COUNT(names); i++)
			assert_string_equal(n->profiles[n->cards[k].first_profile + i].name, names[i]);
	assert_int_equal(n->places[n->profiles[0].first_place].start, 6); /* 1g. from the end */
	assert_int_equal(n->places[n->profiles[1].first_place].start, 0);
	assert_int_equal(n->places[n->profiles[1].first_place + 2].start, 4);
	assert_int_equal(n->places[n->profiles[2].first_place].start, 4);
}

static void pair_scores(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		add_card(n, make_card(i));
	assert_int_equal(node_state_pair_score(n, 0, 2), 0);
	assert_int_equal(node_state_set_pair_score(n, 0, 2, 400, NULL), 0);
	assert_int_equal(node_state_pair_score(n, 0, 2), 400);
	assert_int_equal(node_state_pair_score(n, 2, 0), 0);
}

/* ---- the print */

enum part { COUNT, MEMORY, CORES, NUMA, INDEX, HEALTH, TYPE, MODE, UUID, PARTS };

static struct node_card other_card(enum part part)
{
	struct node_card c = make_card(0);

	switch (part) {
	case COUNT: c.count++; break;
	case MEMORY: c.memory_mib++; break;
	case CORES: c.cores++; break;
	case NUMA: c.numa = -1; break;
	case INDEX: c.index++; break;
	case HEALTH: c.healthy = false; break;
	case TYPE: c.type = "NVIDIA A100-SXM4-40GB"; break;
	case MODE: c.mode = "mps"; break;
	case UUID: memcpy(c.uuid, "GPU-x", sizeof "GPU-x"); break;
	default: break;
	}
	return c;
}

static void the_print_has_what_a_card_is(void **state)
{
	hm_auto(texts) *texts = texts_new();
	uint64_t prints[PARTS + 2];

	(void)state;
	for (int i = 0; i <= PARTS + 1; i++) { /* the last two are alike */
		hm_auto(node_state) *n = node_state_new(i == PARTS ? "n" : "m", texts);

		add_card(n, other_card((enum part)i));
		prints[i] = n->print;
		for (int k = 0; k < i; k++)
			assert_int_equal(prints[i] == prints[k], i == PARTS + 1 && k == PARTS);
	}
}

static void turn(struct node_state *n, int what, bool on)
{
	const struct card_use uses[] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
	const struct mig_placement place = { 2, 2 };

	switch (what) {
	case 0:
	case 1:
	case 2: (on ? node_state_take : node_state_give)(n, 1, &uses[what]); break;
	case 3: node_state_block(n, 1, on); break;
	case 4: node_state_cordon(n, on ? "GPU-1" : NULL); break;
	case 5: assert_int_equal(node_state_set_pair_score(n, 0, 1, on ? 5 : 0, NULL), 0); break;
	case 6:
		if (on)
			assert_int_equal(node_state_occupy(n, 1, place, NULL), 0);
		else
			node_state_vacate(n, 1, place);
		break;
	case 7: (on ? node_state_take : node_state_give)(n, 0, &uses[0]); break;
	default: fail();
	}
}

/* Each change shows, each is another, and none leaves a trace once it is undone, in whatever order. */
static void the_print_has_what_comes_and_goes(void **state)
{
	enum { CHANGES = 8 };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	uint64_t none, all, one[CHANGES];

	(void)state;
	add_card(n, make_card(0));
	add_card(n, make_card(1));
	none = n->print;
	for (int i = 0; i < CHANGES; i++) {
		turn(n, i, true);
		one[i] = n->print;
		assert_true(one[i] != none);
		for (int k = 0; k < i; k++)
			assert_true(one[i] != one[k]);
		turn(n, i, false);
		assert_true(n->print == none);
	}
	for (int i = 0; i < CHANGES; i++)
		turn(n, i, true);
	all = n->print;
	for (int i = 0; i < CHANGES; i++)
		turn(n, i, false);
	assert_true(n->print == none);
	for (int i = CHANGES; i-- > 0;)
		turn(n, i, true);
	assert_true(n->print == all);
}

static void the_print_has_the_profiles(void **state)
{
	static const struct {
		struct card_profile profile;
		struct mig_placement place;
	} rows[] = {
		{ { .name = "1g", .memory_mib = 100, .cores = 14, .slices = 1 }, { 0, 1 } },
		{ { .name = "2g", .memory_mib = 100, .cores = 14, .slices = 1 }, { 0, 1 } },
		{ { .name = "1g", .memory_mib = 101, .cores = 14, .slices = 1 }, { 0, 1 } },
		{ { .name = "1g", .memory_mib = 100, .cores = 15, .slices = 1 }, { 0, 1 } },
		{ { .name = "1g", .memory_mib = 100, .cores = 14, .slices = 2 }, { 0, 1 } },
		{ { .name = "1g", .memory_mib = 100, .cores = 14, .slices = 1 }, { 1, 1 } },
	};
	hm_auto(texts) *texts = texts_new();
	uint64_t prints[HM_COUNT(rows)];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(node_state) *n = node_state_new("n", texts);

		add_card(n, make_card(0));
		assert_int_equal(node_state_add_profile(n, &rows[i].profile, &rows[i].place, 1, NULL), 0);
		prints[i] = n->print;
		for (size_t k = 0; k < i; k++)
			assert_true(prints[i] != prints[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cards),
		cmocka_unit_test(too_many_cards),
		cmocka_unit_test(cordon),
		cmocka_unit_test(holders),
		cmocka_unit_test(slices),
		cmocka_unit_test(profiles_in_order),
		cmocka_unit_test(pair_scores),
		cmocka_unit_test(texts_go_with_the_node),
		cmocka_unit_test(the_print_has_what_a_card_is),
		cmocka_unit_test(the_print_has_what_comes_and_goes),
		cmocka_unit_test(the_print_has_the_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
