#include "model/placement/pod_mix.h"

#include "harness/unit.h"

static const struct mix_shape half = { 1, { .percent = 50 } }, whole = { 1, { .percent = 100 } };

static void equal_shapes_add_up(void **state)
{
	struct mix_shape named = { 1, { .percent = 50 }, .use_types = "T4" },
			 unnamed = { 1, { .percent = 50 }, .use_types = "" };
	hm_auto_pod_mix m = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(pod_mix_add(&m, &half, 2, &e), 0);
	assert_int_equal(pod_mix_add(&m, &named, 1, &e), 0);
	assert_int_equal(pod_mix_add(&m, &unnamed, 5, &e), 0);
	assert_int_equal(m.count, 2);
	assert_int_equal(m.entries[0].weight, 7);
	assert_string_equal(m.entries[1].shape.use_types, "T4");
	assert_true(m.entries[1].shape.use_types != named.use_types);
	assert_int_equal(m.total, 8);
}

static void the_last_pods_count(void **state)
{
	hm_auto_pod_mix m = { 0 };
	struct hm_err e;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(pod_mix_see(&m, &half, &e), 0);
	for (int i = 0; i < MIX_WINDOW - 4; i++)
		assert_int_equal(pod_mix_see(&m, &whole, &e), 0);
	assert_int_equal(m.seen, MIX_WINDOW + 6);
	assert_int_equal(m.total, MIX_WINDOW);
	assert_int_equal(m.entries[0].weight, 4);
	assert_int_equal(m.entries[1].weight, MIX_WINDOW - 4);
}

/* Three quarters of the pods are told first: a fair sample of all stays, and those that come later leave nothing of it.
 */
static void a_sample_is_fair(void **state)
{
	hm_auto_pod_mix m = { 0 };
	struct hm_err e;

	(void)state;
	for (int i = 0; i < 4 * MIX_WINDOW; i++)
		assert_int_equal(pod_mix_sample(&m, i < 3 * MIX_WINDOW ? &half : &whole, &e), 0);
	assert_int_equal(m.seen, 4 * MIX_WINDOW);
	assert_int_equal(m.total, MIX_WINDOW);
	assert_in_range(m.entries[1].weight, MIX_WINDOW / 4 - 100, MIX_WINDOW / 4 + 100); /* 28 is usual */
	for (int i = 0; i < MIX_WINDOW; i++)
		assert_int_equal(pod_mix_see(&m, &half, &e), 0);
	assert_int_equal(m.entries[0].weight, MIX_WINDOW);
}

static void pods_without_cards_do_not_count(void **state)
{
	static const struct mix_shape none = { .cpu_milli = 1000 };
	hm_auto_pod_mix m = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(pod_mix_add(&m, &none, 5, &e), 0);
	assert_int_equal(pod_mix_see(&m, &none, &e), 0);
	assert_int_equal(pod_mix_sample(&m, &none, &e), 0);
	assert_true(m.count == 0 && m.total == 0 && m.seen == 0);
}

static uint64_t weight_of(const struct pod_mix *m, int32_t memory_mib)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < m->count; i++)
		if (m->entries[i].shape.each.memory_mib == memory_mib)
			weight += m->entries[i].weight;
	return weight;
}

static void see(struct pod_mix *m, int32_t memory_mib)
{
	struct mix_shape s = { 1, { .memory_mib = memory_mib }, .use_types = "T4" };
	struct hm_err e;

	assert_int_equal(pod_mix_see(m, &s, &e), 0);
}

/* The first shape has two pods: it stays when rarer ones give way. */
static void the_rarest_shape_gives_way(void **state)
{
	hm_auto_pod_mix m = { 0 };
	struct hm_err e;

	(void)state;
	see(&m, 1);
	for (int32_t i = 1; i <= MIX_MAX_SHAPES + 2; i++)
		see(&m, i);
	assert_int_equal(m.count, MIX_MAX_SHAPES);
	assert_int_equal(m.total, MIX_MAX_SHAPES + 1);
	assert_int_equal(weight_of(&m, 1), 2);
	assert_int_equal(weight_of(&m, 2), 0); /* of those with one pod the first two */
	assert_int_equal(weight_of(&m, 3), 0);
	assert_int_equal(weight_of(&m, 4), 1);
	assert_int_equal(weight_of(&m, MIX_MAX_SHAPES + 2), 1);
	assert_int_equal(pod_mix_add(&m, &half, 1, &e), -HM_ELIMIT);
	/* Once the window is full, its pods are the mix: those that gave way don't leave a second time. */
	for (int32_t i = 0; i < MIX_WINDOW; i++)
		see(&m, 4);
	assert_int_equal(m.total, MIX_WINDOW);
	assert_int_equal(weight_of(&m, 4), MIX_WINDOW);
}

static void a_pod_is_one_shape(void **state)
{
	struct card_ask containers[] = {
		{ ASK_INIT, 8, 0, 100, 100 },
		{ ASK_SIDECAR, 1, 1000, 0, 10 },
		{ ASK_APP, 0, 0, 0, 0 },
		{ ASK_APP, 2, 3000, 0, 0 },
	};
	struct pod_ask ask = {
		.containers = containers, .count = 4, .cpu_milli = 500, .host_mib = 64, .wishes = { .no_types = "T4" }
	};
	struct mix_shape s = mix_shape_of(&ask);

	(void)state;
	assert_int_equal(s.cards, 3);
	assert_int_equal(s.each.memory_mib, 3000);
	assert_int_equal(s.each.cores, 10);
	assert_int_equal(s.cpu_milli, 500);
	assert_int_equal(s.host_mib, 64);
	assert_string_equal(s.no_types, "T4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_shapes_add_up), cmocka_unit_test(the_last_pods_count),
		cmocka_unit_test(a_sample_is_fair),    cmocka_unit_test(the_rarest_shape_gives_way),
		cmocka_unit_test(a_pod_is_one_shape),  cmocka_unit_test(pods_without_cards_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
