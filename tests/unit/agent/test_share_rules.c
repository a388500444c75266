/* What follows for one container on one card. */
#include "agent/processes/share_rules.h"

#include "core/macros.h"
#include "harness/unit.h"
#include "region/bucket.h"

#define MS UINT64_C(1000000)
#define NOW (UINT64_C(1000000) * MS)

struct order_case {
	const char *name;
	struct share share;
	struct share_card card;
	bool open, hold;
};

#define LIMITED .cores = 30, .priority = 1

static const struct order_case order_cases[] = {
	{ "alone", { LIMITED }, { .seen = true }, true, false },
	{ "alone and at work", { LIMITED, .at_work_ns = NOW }, { .seen = true, .at_work = { 0, 1 } }, true, false },
	{ "beside another", { LIMITED }, { .seen = true, .at_work = { 0, 1 } }, false, false },
	{ "both at work", { LIMITED, .at_work_ns = NOW }, { .seen = true, .at_work = { 0, 2 } }, false, false },
	{ "at work a second ago, and another now",
	  { LIMITED, .at_work_ns = NOW - 1001 * MS },
	  { .seen = true, .at_work = { 0, 1 } },
	  false,
	  false },
	{ "beside strangers", { LIMITED }, { .seen = true, .strangers = true }, false, false },
	{ "the driver did not answer", { LIMITED }, { .seen = false }, false, false },
	{ "always limited", { LIMITED, .policy = LIMIT_POLICY_FORCE }, { .seen = true }, false, false },
	{ "never limited", { LIMITED, .policy = LIMIT_POLICY_DISABLE }, { .seen = true }, false, false },
	{ "the whole card", { .cores = 100, .priority = 1 }, { .seen = true }, false, false },
	{ "a higher one at work", { LIMITED }, { .seen = true, .at_work = { 1, 0 } }, false, true },
	{ "and no limit", { .cores = 100, .priority = 1 }, { .seen = true, .at_work = { 1, 0 } }, false, true },
	{ "a lower one at work", { .cores = 30 }, { .seen = true, .at_work = { 0, 1 } }, true, false },
	{ "both of the higher", { .cores = 30 }, { .seen = true, .at_work = { 1, 0 } }, false, false },
	{ "held from elsewhere", { .cores = 100, .held = true }, { .seen = true }, false, true },
	{ "but never limited",
	  { LIMITED, .held = true, .policy = LIMIT_POLICY_DISABLE },
	  { .seen = true },
	  false,
	  false },
};

static void orders(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HM_COUNT(order_cases); i++) {
		const struct order_case *c = &order_cases[i];
		struct region_orders got = share_orders(&c->share, &c->card, NOW);

		if ((got.open_until_ns == NOW + 3000 * MS) != c->open || (got.open_until_ns == 0) == c->open)
			fail_msg("%s: open", c->name);
		if ((got.hold_until_ns == NOW + 3000 * MS) != c->hold || (got.hold_until_ns == 0) == c->hold)
			fail_msg("%s: hold", c->name);
		assert_int_equal(got.alpha | got.alpha_until_ns | got.error_ns, 0);
	}
}

/* A moment that still lies well ahead is left alone; nonsense is not. */
static void moments_are_moved_on_in_time(void **state)
{
	static const struct {
		uint64_t stands, want;
	} cases[] = {
		{ NOW + 2000 * MS, NOW + 2000 * MS }, { NOW + 1500 * MS, NOW + 3000 * MS }, { 0, NOW + 3000 * MS },
		{ NOW + 3001 * MS, NOW + 3000 * MS }, { UINT64_MAX, NOW + 3000 * MS },
	};
	const struct share_card card = { .seen = true };

	(void)state;
	for (unsigned i = 0; i < HM_COUNT(cases); i++) {
		struct share s = { LIMITED, .alpha.value = 7 };

		s.stands.open_until_ns = s.stands.alpha_until_ns = cases[i].stands;
		assert_int_equal(share_orders(&s, &card, NOW).open_until_ns, cases[i].want);
		assert_int_equal(share_orders(&s, &card, NOW).alpha_until_ns, cases[i].want);
		assert_int_equal(share_orders(&s, &card, NOW).alpha, 7);
	}
}

/* Samples of 150 ms; what a container charges and what the driver says that it used, in percent. */
static void run(struct share *s, uint64_t *now, unsigned samples, unsigned charged, unsigned used,
		struct region_orders stands)
{
	for (unsigned i = 0; i < samples; i++) {
		struct share_card card = { .seen = true, .from_ns = *now - 150 * MS, .to_ns = *now };

		share_note(s, *now, s->spans_ns + charged * 150 * MS / 100, &stands);
		s->used_percent = used;
		share_sample(s, &card, *now);
		*now += 150 * MS;
	}
}

/* A long kernel is charged in one sample and used in others: nobody else's slices are in it. */
static void who_is_alone_is_believed(void **state)
{
	struct share s = { LIMITED };
	struct region_orders none = { 0 };

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t now = NOW + i * 150 * MS;
		struct share_card card = { .seen = true, .from_ns = now - 150 * MS, .to_ns = now, .used_percent = 50 };

		share_note(&s, now, s.spans_ns + (i % 4 == 0 ? 300 * MS : 0), &none);
		s.used_percent = 50;
		share_sample(&s, &card, now);
	}
	assert_int_equal(s.alpha.value, BUCKET_ALPHA_ONE);
	assert_int_equal(s.alpha.error_ns, 0);
}

static void spans_that_count_for_half(void **state)
{
	struct share s = { LIMITED, .error_base = UINT64_MAX };
	const struct share_card card = { .seen = true };
	const struct region_orders none = { 0 };
	uint64_t now = NOW;

	(void)state;
	run(&s, &now, 20, 60, 30, none);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE / 2 - 700, BUCKET_ALPHA_ONE / 2 + 700);
	assert_int_equal(share_orders(&s, &card, now).alpha, s.alpha.value);
	/* The error goes on from what stood there, whatever that was. */
	s.alpha.error_ns = 5;
	assert_int_equal(share_orders(&s, &card, now).error_ns, 4);
	s.policy = LIMIT_POLICY_DISABLE;
	assert_int_equal(share_orders(&s, &card, now).alpha, 0);
}

/* More than the whole card is nonsense, and counts as that. */
static void percent_is_bounded(void **state)
{
	struct share s = { LIMITED };
	const struct region_orders none = { 0 };
	uint64_t now = NOW;

	(void)state;
	run(&s, &now, 20, 200, 4000000000U, none);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE / 2 - 700, BUCKET_ALPHA_ONE / 2 + 700);
}

/* It launches, and the driver does not list it: its spans are not taken for nothing. Pauses are none of this. */
static void whom_the_driver_does_not_see_is_not_corrected(void **state)
{
	struct share s = { LIMITED };
	const struct region_orders none = { 0 };
	uint64_t now = NOW;

	(void)state;
	run(&s, &now, 20, 30, 30, none);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE - 700, BUCKET_ALPHA_ONE + 700);
	run(&s, &now, 200, 0, 0, none);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE - 700, BUCKET_ALPHA_ONE + 700);
	run(&s, &now, 40, 30, 0, none);
	assert_int_equal(s.alpha.value, 0);
	run(&s, &now, 20, 60, 30, none);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE / 2 - 700, BUCKET_ALPHA_ONE / 2 + 700);
}

/* Nothing is charged while the card is open: what is used then is no error. */
static void open_time_is_not_held_against_it(void **state)
{
	struct share s = { LIMITED };
	const struct region_orders none = { 0 };
	uint64_t now = NOW;
	int64_t error;

	(void)state;
	run(&s, &now, 20, 60, 30, none);
	error = s.alpha.error_ns;
	for (unsigned i = 0; i < 20; i++)
		run(&s, &now, 1, 0, 100, (struct region_orders) { .open_until_ns = now + 2000 * MS });
	run(&s, &now, 3, 0, 100, none); /* launched before */
	assert_int_equal(s.alpha.error_ns, error);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE / 2 - 700, BUCKET_ALPHA_ONE / 2 + 700);
	run(&s, &now, 20, 30, 30, none);
	assert_in_range(s.alpha.value, BUCKET_ALPHA_ONE * 9 / 10, BUCKET_ALPHA_ONE + 700);
}

static void work_is_seen_by_samples_and_by_charges(void **state)
{
	const struct region_orders none = { 0 };
	struct share s = { LIMITED };
	uint64_t now = NOW;

	(void)state;
	share_note(&s, now, 500, &none); /* charged before we came */
	assert_false(share_is_at_work(s.at_work_ns, now));
	share_note(&s, now + MS, 501, &none);
	assert_true(share_is_at_work(s.at_work_ns, now + MS));
	assert_true(share_is_at_work(s.at_work_ns, now + 1001 * MS));
	assert_false(share_is_at_work(s.at_work_ns, now + 1002 * MS));
	now += 5000 * MS;
	run(&s, &now, 1, 0, 1, none);
	assert_true(share_is_at_work(s.at_work_ns, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders),
		cmocka_unit_test(moments_are_moved_on_in_time),
		cmocka_unit_test(spans_that_count_for_half),
		cmocka_unit_test(who_is_alone_is_believed),
		cmocka_unit_test(percent_is_bounded),
		cmocka_unit_test(whom_the_driver_does_not_see_is_not_corrected),
		cmocka_unit_test(open_time_is_not_held_against_it),
		cmocka_unit_test(work_is_seen_by_samples_and_by_charges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
