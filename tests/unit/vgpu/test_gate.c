/* The compute limiter's arithmetic, and its shares on a modelled card on a virtual clock. */
#include "vgpu/gate.h"

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"
#include "unit/vgpu/card_model.h"
#include "vgpu/estimate.h"

#define MS UINT64_C(1000000)
#define BOOT (UINT64_C(1000000) * MS)

static void test_bucket_refills_and_caps(void **state)
{
	struct region_compute c = { 0 };

	(void)state;
	assert_int_equal(bucket_take(&c, 50, BOOT, 30 * MS), 0); /* 20 ms were there: 10 ms of debt */
	assert_int_equal(bucket_take(&c, 50, BOOT, MS), 20 * MS + 1);
	assert_int_equal(bucket_take(&c, 50, BOOT + 10 * MS, MS), 10 * MS + 1);
	assert_int_equal(bucket_take(&c, 50, BOOT + 21 * MS, MS), 0);
	assert_int_equal(c.spans_ns, 31 * MS);
	/* An hour later no more than the cap has come together. */
	assert_int_equal(bucket_take(&c, 50, BOOT + 3600000 * MS, 20 * MS), 0);
	assert_int_equal(bucket_take(&c, 50, BOOT + 3600000 * MS, MS), 1);
}

static void test_bucket_settles(void **state)
{
	struct region_compute c = { 0 };

	(void)state;
	assert_int_equal(bucket_take(&c, 25, BOOT, 20 * MS), 0);
	bucket_settle(&c, 25, BOOT, (int64_t)(5 * MS));
	assert_int_equal(bucket_take(&c, 25, BOOT, MS), 20 * MS + 1);
	bucket_settle(&c, 25, BOOT, -(int64_t)(6 * MS));
	assert_int_equal(bucket_take(&c, 25, BOOT, MS), 0);
	assert_int_equal(c.spans_ns, 20 * MS);
}

static void test_alpha_scales_charges(void **state)
{
	struct region_compute c = { .alpha = BUCKET_ALPHA_ONE / 2 };

	(void)state;
	assert_int_equal(bucket_take(&c, 50, BOOT, 50 * MS), 0); /* counts for 25 ms */
	assert_int_equal(bucket_take(&c, 50, BOOT, MS), 10 * MS + 1);
}

/* Whatever stands in the words, nobody waits longer than the debt, and not for nothing. */
static void test_scribbled_words(void **state)
{
	static const uint64_t words[] = { 0, 1, BOOT, BOOT + MS, INT64_MAX, UINT64_MAX, UINT64_MAX - 5 };

	(void)state;
	for (unsigned i = 0; i < HM_COUNT(words); i++) {
		for (unsigned j = 0; j < HM_COUNT(words); j++) {
			struct region_compute c = { .zero_ns = words[i], .alpha = words[j] };
			uint64_t wait;

			bucket_settle(&c, 1, BOOT, INT64_MAX);
			wait = bucket_take(&c, 1, BOOT, UINT64_MAX);
			assert_true(wait <= BUCKET_DEBT_NS + 1);
			assert_int_equal(bucket_take(&c, 1, BOOT + BUCKET_DEBT_NS + 2, MS), 0);
		}
	}
}

static void test_unknown_kernels_run_alone(void **state)
{
	struct region_compute c = { 0 };
	struct gate g = { .shared = &c, .share = 50 };
	int64_t first;

	(void)state;
	assert_int_equal(gate_ask(&g, BOOT, 0, false), 0);
	first = gate_launched(&g);
	assert_int_equal(gate_ask(&g, BOOT, 0, false), GATE_POLL_NS);
	assert_int_equal(gate_ask(&g, BOOT, MS, false), GATE_POLL_NS);
	assert_int_equal(gate_ask(&g, BOOT, MS, true), 0); /* what runs may wait for it */
	gate_done(&g, BOOT + MS, 0, MS, 1, first);
	assert_int_equal(gate_ask(&g, BOOT + MS, MS, false), 0);
}

static void test_host_does_not_run_ahead(void **state)
{
	struct region_compute c = { 0 };
	struct gate g = { .shared = &c, .share = 99 };
	unsigned launched = 0;

	(void)state;
	while (gate_ask(&g, BOOT + launched * MS, 3 * MS, false) == 0 && launched < 100)
		launched++;
	assert_int_equal(launched, 6); /* 18 ms; the seventh would pass 20 */
	gate_idle(&g);
	assert_int_equal(gate_ask(&g, BOOT + 100 * MS, 50 * MS, false), 0); /* alone, whatever its length */
}

static void test_credit_needs_no_clock(void **state)
{
	struct region_compute c = { 0 };
	struct gate g = { .shared = &c, .share = 30 };
	unsigned passed = 0;

	(void)state;
	assert_false(gate_pass(&g, 10000));
	assert_int_equal(gate_ask(&g, BOOT, 10000, false), 0);
	while (gate_pass(&g, 10000))
		passed++;
	assert_int_equal(passed, GATE_CREDIT_NS / 10000);
	assert_int_equal(c.spans_ns, GATE_CREDIT_NS + 10000);
}

static void test_few_launches_are_measured(void **state)
{
	static struct estimates all;
	struct estimate *row = estimate_find(&all, estimate_key(&all, 80, 256));
	unsigned marks = 0, stood_for = 0;
	uint32_t weight;

	(void)state;
	assert_ptr_equal(estimate_find(&all, estimate_key(&all, 80, 256)), row);
	assert_ptr_not_equal(estimate_find(&all, estimate_key(&all, 81, 256)), row);
	for (unsigned i = 0; i < ESTIMATE_LEARN; i++) {
		assert_true(estimate_wants_mark(&all, row, &weight));
		assert_int_equal(weight, 1);
		estimate_learn(row, 10000);
	}
	assert_int_equal(row->ns, 10000);
	for (unsigned i = 0; i < 2000; i++) {
		if (estimate_wants_mark(&all, row, &weight)) {
			marks++;
			stood_for += weight;
		}
	}
	assert_in_range(marks, 99, 101); /* each 200 us of 10 us kernels */
	assert_in_range(stood_for, 1980, 2000);
	estimate_learn(row, 20000);
	assert_int_equal(row->ns, 13000);
}

struct share_case {
	const char *name;
	struct model model;
	double points, window_points; /* how far the mean, and a window of 2 s, may be off */
};

#define ALONE(percent, sync_, ...)                                                                                     \
	{                                                                                                              \
		.share = { percent }, .seconds = 8, .processes = { { 0, { __VA_ARGS__ }, sync_, 0 } }                  \
	}
#define MIXED 50, 200, 1000, 5000, 20000
#define SAMPLED .sample_ms = 200, .seconds = 12
#define LATE .sample_ms = 200, .lag_ms = 200, .noise_points = 3, .seconds = 12

static const struct share_case cases[] = {
	{ "alone 10 % 10 ms", ALONE(10, 10, 10000), 1, 3 },
	{ "alone 20 % 10 ms", ALONE(20, 10, 10000), 1, 3 },
	{ "alone 30 % 10 ms", ALONE(30, 10, 10000), 1, 3 },
	{ "alone 50 % 10 ms", ALONE(50, 10, 10000), 1, 3 },
	{ "alone 80 % 10 ms", ALONE(80, 10, 10000), 1, 3 },
	{ "alone 90 % 10 ms", ALONE(90, 10, 10000), 1, 3 },
	{ "alone 10 % 0.1 ms", ALONE(10, 100, 100), 1, 3 },
	{ "alone 40 % 0.1 ms", ALONE(40, 100, 100), 1, 3 },
	{ "alone 60 % 0.1 ms", ALONE(60, 100, 100), 1, 3 },
	{ "alone 70 % 0.1 ms", ALONE(70, 100, 100), 1, 3 },
	{ "alone 30 % 1 ms sync 1", ALONE(30, 1, 1000), 1, 3 },
	{ "alone 30 % 0.02 ms no sync", ALONE(30, 0, 20), 1, 3 },
	{ "alone 30 % mixed", ALONE(30, 7, MIXED), 1, 3 },
	{ "alone 30 % mixed, one kernel",
	  { .share = { 30 }, .seconds = 12, .one_kind = true, .processes = { { 0, { MIXED }, 7, 0 } } },
	  1,
	  3 },
	{ "alone 30 % 200 ms no sync", ALONE(30, 0, 200000), 3, 8 },
	{ "two processes of one container",
	  { .share = { 30 }, .processes = { { 0, { 1000 }, 20, 0 }, { 0, { 5000 }, 3, 0 } }, SAMPLED },
	  1,
	  3 },
	{ "one of two killed",
	  { .share = { 30 }, .processes = { { 0, { 1000 }, 20, 0 }, { 0, { 5000 }, 0, 2000000 } }, SAMPLED },
	  1,
	  3 },
	{ "30/70 1 ms",
	  { .share = { 30, 70 }, .processes = { { 0, { 1000 }, 20, 0 }, { 1, { 1000 }, 20, 0 } }, SAMPLED },
	  2,
	  3 },
	{ "30/70 10 ms and 0.2 ms",
	  { .share = { 30, 70 }, .processes = { { 0, { 10000 }, 10, 0 }, { 1, { 200 }, 50, 0 } }, SAMPLED },
	  2,
	  3 },
	{ "30/70 mixed",
	  { .share = { 30, 70 }, .processes = { { 0, { MIXED }, 7, 0 }, { 1, { MIXED }, 11, 0 } }, SAMPLED },
	  2,
	  3 },
	{ "30/70 mixed, samples late and noisy",
	  { .share = { 30, 70 }, .processes = { { 0, { MIXED }, 7, 0 }, { 1, { MIXED }, 11, 0 } }, LATE },
	  2,
	  3 },
	{ "10/20/70 mixed",
	  { .share = { 10, 20, 70 },
	    .processes = { { 0, { MIXED }, 7, 0 }, { 1, { MIXED }, 5, 0 }, { 2, { MIXED }, 11, 0 } },
	    SAMPLED },
	  2,
	  3 },
	{ "30 beside an unlimited one",
	  { .share = { 30, 100 }, .processes = { { 0, { 1000 }, 20, 0 }, { 1, { 1000 }, 20, 0 } }, SAMPLED },
	  2,
	  3 },
	{ "30 beside an unlimited one, mixed",
	  { .share = { 30, 100 }, .processes = { { 0, { MIXED }, 7, 0 }, { 1, { MIXED }, 11, 0 } }, SAMPLED },
	  2,
	  3 },
};

static double want(const struct share_case *c, unsigned i)
{
	return c->model.share[i] == 100 ? 100 - c->model.share[0] : c->model.share[i];
}

static bool holds(const struct share_case *c, const struct model_result *r, unsigned i)
{
	double wanted = want(c, i);

	return r->mean[i] >= wanted - c->points && r->mean[i] <= wanted + c->points &&
	       r->low[i] >= wanted - c->window_points && r->high[i] <= wanted + c->window_points;
}

static void test_shares(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (unsigned n = 0; n < HM_COUNT(cases); n++) {
		struct model_result r = model_run(&cases[n].model);

		for (unsigned i = 0; i < MODEL_CONTAINERS && cases[n].model.share[i] != 0; i++) {
			bool good = holds(&cases[n], &r, i);

			print_message("%s%s: %.0f %%: mean %.1f, 2 s %.1f to %.1f\n", good ? "" : "WRONG ",
				      cases[n].name, want(&cases[n], i), r.mean[i], r.low[i], r.high[i]);
			wrong += !good;
		}
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bucket_refills_and_caps),
		cmocka_unit_test(test_bucket_settles),
		cmocka_unit_test(test_alpha_scales_charges),
		cmocka_unit_test(test_scribbled_words),
		cmocka_unit_test(test_unknown_kernels_run_alone),
		cmocka_unit_test(test_host_does_not_run_ahead),
		cmocka_unit_test(test_credit_needs_no_clock),
		cmocka_unit_test(test_few_launches_are_measured),
		cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
