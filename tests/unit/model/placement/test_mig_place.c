/* Profiles and places in HAMi's order, beside what is taken and what the pod's ended containers had. */
#include "model/placement/mig_place.h"

#include "make_mig.h"

/* "3g.20gb@4", or "no". */
static const char *place(const struct node_state *n, int32_t memory, uint64_t busy, const struct card_share *earlier,
			 size_t count)
{
	static char text[64];
	struct mig_placement at;
	int32_t profile;

	if (!mig_place(n, 0, memory, busy, earlier, count, &profile, &at))
		return "no";
	snprintf(text, sizeof text, "%s@%u", n->profiles[profile].name, at.start);
	return text;
}

static void one_after_another(void **state)
{
	/* The first four are HAMi's example. */
	static const struct {
		int32_t memory;
		const char *where;
		uint32_t start, size;
	} steps[] = {
		{ 20096, "3g.20gb@4", 4, 4 }, { 9984, "2g.10gb@0", 0, 2 }, { 4864, "1g.5gb@3", 3, 1 },
		{ 4864, "1g.5gb@2", 2, 1 },   { 4864, "no", 0, 0 },        { 1, "no", 0, 0 },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	uint64_t busy = 0;

	(void)state;
	add_mig_card(n, 0);
	for (size_t i = 0; i < HM_COUNT(steps); i++) {
		assert_string_equal(place(n, steps[i].memory, busy, NULL, 0), steps[i].where);
		busy |= mig_place_bits((struct mig_placement) { steps[i].start, steps[i].size });
	}
}

static void a_larger_one_where_the_smallest_is_full(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	add_mig_card(n, 0);
	assert_string_equal(place(n, 4864, 0x7f, NULL, 0), "no"); /* only slice 7, which no profile begins at */
	assert_string_equal(place(n, 9000, 0x0f, NULL, 0), "2g.10gb@4");
	assert_string_equal(place(n, 9000, 0x55, NULL, 0), "no");
	assert_string_equal(place(n, 10000, 0x0f, NULL, 0), "3g.20gb@4");
	assert_string_equal(place(n, 20096, 0xf0, NULL, 0), "3g.20gb@0");
	assert_string_equal(place(n, 20097, 0, NULL, 0), "7g.40gb@0");
	assert_string_equal(place(n, 40321, 0, NULL, 0), "no");
}

static void beside_ended_containers(void **state)
{
	static const struct card_share earlier[] = {
		{ .card = 0, .at = { 4, 4 } },
		{ .card = 1, .at = { 0, 8 } }, /* another card's */
		{ .card = 0, .profile = NO_PROFILE },
	};
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	add_mig_card(n, 0);
	assert_string_equal(place(n, 20096, 0, earlier, 3), "3g.20gb@4"); /* the same instance again */
	assert_string_equal(place(n, 4864, 0, earlier, 3), "1g.5gb@3");   /* not within it */
	assert_string_equal(place(n, 40000, 0, earlier, 3), "no");
}

static void most(void **state)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);

	(void)state;
	add_mig_card(n, 0);
	assert_int_equal(mig_most(n, 0, 4864), 7);
	assert_int_equal(mig_most(n, 0, 9984), 3);
	assert_int_equal(mig_most(n, 0, 20000), 2);
	assert_int_equal(mig_most(n, 0, 30000), 1);
	assert_int_equal(mig_most(n, 0, 40321), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_after_another),
		cmocka_unit_test(a_larger_one_where_the_smallest_is_full),
		cmocka_unit_test(beside_ended_containers),
		cmocka_unit_test(most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
