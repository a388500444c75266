/* Weights as HAMi reads them, with its words; scores of its worked example, the request counted. */
#include "model/placement/card_score.h"

#include <math.h>
#include <string.h>

#include "harness/unit.h"
#include "make_node.h"

static void weights(void **state)
{
	static const struct {
		const char *text;
		struct card_weights out;
	} good[] = {
		{ NULL, { 1, 1, 1 } },
		{ "slot=1,core=1,memory=3", { 1, 1, 3 } },
		{ " slot = 1 , core=2,memory=3 ", { 1, 2, 3 } },
		{ "memory=0,core=1,slot=0", { 0, 1, 0 } },
		{ "slot=+2,core=-0,memory=0", { 2, 0, 0 } },
	};
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "\"\": expected slot, core, and memory weights" },
		{ "slot=1,core=1", "\"slot=1,core=1\": expected slot, core, and memory weights" },
		{ "1,1,1", "\"1,1,1\": expected key=value entries" },
		{ "slot=1,slot=1,memory=1", "\"slot=1,slot=1,memory=1\": duplicate \"slot\" weight" },
		{ "slot=a,core=1,memory=1", "\"slot=a,core=1,memory=1\": \"slot\" weight must be an integer" },
		{ "slot=-1,core=1,memory=1", "\"slot=-1,core=1,memory=1\": \"slot\" weight must not be negative" },
		{ "slot=1,core=1,mem=1", "\"slot=1,core=1,mem=1\": unknown weight \"mem\"" },
		{ "slot=0,core=0,memory=0", "\"slot=0,core=0,memory=0\": at least one weight must be positive" },
		{ "a\nb", "\"a\\nb\": expected slot, core, and memory weights" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(good); i++) {
		struct card_weights got;

		assert_int_equal(card_weights_read(good[i].text, &got, NULL), 0);
		assert_memory_equal(&got, &good[i].out, sizeof got);
	}
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		static const char before[] = "invalid hami.io/device-scoring-weights annotation ";
		struct card_weights got;
		struct hm_err e;

		assert_int_equal(card_weights_read(bad[i].text, &got, &e), -HM_EINVAL);
		assert_memory_equal(e.msg, before, strlen(before));
		assert_string_equal(e.msg + strlen(before), bad[i].says);
	}
}

/* HAMi's example is of cards without the request: 11.662, 6.441; 18.986, 11.324. */
static void fullness(void **state)
{
	static const struct {
		struct card_use used;
		struct card_ask ask;
		struct card_weights weights;
		double score; /* by hand: HAMi's and what the request adds */
	} cases[] = {
		{ { 2, 30000, 60 }, { .memory_mib = 0 }, { 1, 1, 1 }, 11.66211 + 1 },
		{ { 1, 20000, 30 }, { .memory_mib = 0 }, { 1, 1, 1 }, 6.44141 + 1 },
		{ { 2, 30000, 60 }, { .memory_mib = 0 }, { 1, 1, 3 }, 18.98633 + 1 },
		{ { 1, 20000, 30 }, { .memory_mib = 8192, .cores = 20 }, { 1, 1, 3 }, 11.32422 + 1 + 2 + 3 },
		{ { 1, 20000, 30 }, { .percent = 50 }, { 1, 1, 3 }, 11.32422 + 1 + 15 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct node_card c = make_card(0);
		double got = (double)card_fullness(&c, &cases[i].used, &cases[i].ask, &cases[i].weights);

		if (fabs(got - cases[i].score) > 0.0001)
			fail_msg("case %zu: %f", i, got);
	}
}

static void nothing_to_divide_by(void **state)
{
	struct card_ask ask = { .memory_mib = 1000, .cores = 10 };
	struct card_weights w = { 1, 1, 1 };
	struct card_use used = { 1, 1, 1 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct node_card c = make_card(0);

		*(int32_t *[]) { &c.count, &c.cores, &c.memory_mib }[i] = 0;
		assert_true(card_fullness(&c, &used, &ask, &w) == 0);
	}
}

/* A percentage is the same part of every card, whatever it comes to in whole MiB. */
static void percentages_stay_equal(void **state)
{
	struct card_ask third = { .percent = 33 };
	struct card_weights w = { 1, 1, 1 };
	struct card_use none = { 0 };
	struct node_card large = make_card(0), small = make_card(1);

	(void)state;
	large.memory_mib = 40960;
	small.memory_mib = 24564;
	assert_true(card_fullness(&large, &none, &third, &w) == card_fullness(&small, &none, &third, &w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights),
		cmocka_unit_test(fullness),
		cmocka_unit_test(nothing_to_divide_by),
		cmocka_unit_test(percentages_stay_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
