/* What is written to a region from outside, and the arithmetic of it. */
#include "region/alpha.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/macros.h"
#include "harness/unit.h"
#include "region/bucket.h"
#include "region/map.h"
#include "region/region.h"

#define MS UINT64_C(1000000)
#define ONE BUCKET_ALPHA_ONE

static char path[64];

static int setup(void **state)
{
	const struct limits l = { .cards = { { "GPU-a", 1000, 30 }, { "GPU-b", 1000, 50 } }, .count = 2 };
	char folder[] = "/tmp/hm-share-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/region", folder);
	return region_create(path, &l, NULL);
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	path[sizeof "/tmp/hm-share-XXXXXX" - 1] = '\0';
	return rmdir(path);
}

static void words_reach_who_has_it_mapped(void **state)
{
	static const struct region_orders want = { 5, (uint64_t)-6, 7, 8, 9 };
	struct region_orders stands;
	struct region_map m;
	uint64_t spans;
	hm_auto_fd fd = region_share_open(path, NULL);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(region_share_card(fd, "GPU-a", NULL), 0);
	assert_int_equal(region_share_card(fd, "GPU-b", NULL), 1);
	assert_int_equal(region_share_card(fd, "GPU-c", NULL), -HM_ENOTFOUND);
	assert_int_equal(region_map_file(path, &m, NULL), 0);
	m.r->compute[1].spans_ns = 77;
	assert_int_equal(region_share_read(fd, 1, &spans, &stands, NULL), 0);
	assert_int_equal(spans, 77);
	assert_int_equal(region_share_write(fd, 1, &stands, &want, NULL), 0);
	assert_int_equal(m.r->compute[1].alpha, 5);
	assert_int_equal((int64_t)m.r->compute[1].error_ns, -6);
	assert_int_equal(m.r->compute[1].open_until_ns, 7);
	assert_int_equal(m.r->compute[1].hold_until_ns, 8);
	assert_int_equal(m.r->compute[1].alpha_until_ns, 9);
	assert_int_equal(m.r->compute[0].alpha, 0);
	assert_int_equal(m.r->compute[1].zero_ns, 0);
	m.r->compute[1].hold_until_ns = 1000; /* somebody's scribble is seen */
	assert_int_equal(region_share_read(fd, 1, &spans, &stands, NULL), 0);
	assert_int_equal(stands.hold_until_ns, 1000);
	assert_int_equal(stands.alpha, 5);
	region_unmap(&m);
}

/* What is right already is not touched. */
static void only_what_differs_is_written(void **state)
{
	const struct region_orders same = { 5, 6, 7, 8, 9 };
	struct region_map m;
	hm_auto_fd fd = region_share_open(path, NULL);

	(void)state;
	assert_int_equal(region_share_write(fd, 0, &same, &same, NULL), 0);
	assert_int_equal(region_map_file(path, &m, NULL), 0);
	assert_int_equal(m.r->compute[0].alpha, 0);
	region_unmap(&m);
}

static void a_region_that_is_gone_is_noticed(void **state)
{
	struct region_orders stands;
	uint64_t spans;
	char other[80];
	hm_auto_fd fd = region_share_open(path, NULL);

	(void)state;
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(region_share_read(fd, 0, &spans, &stands, NULL), -HM_EPROTO);
	assert_int_equal(region_share_open(path, NULL), -HM_EPROTO);
	assert_int_equal(truncate(path, sizeof(struct region_layout) + 1), 0);
	assert_int_equal(region_share_read(fd, 0, &spans, &stands, NULL), -HM_EPROTO);
	assert_int_equal(truncate(path, sizeof(struct region_layout)), 0);
	assert_int_equal(region_share_read(fd, 0, &spans, &stands, NULL), 0);
	snprintf(other, sizeof other, "%s.other", path);
	assert_int_equal(rename(path, other), 0);
	unlink(other);
	assert_int_equal(region_share_read(fd, 0, &spans, &stands, NULL), -HM_ENOTFOUND);
	assert_int_equal(region_share_open(path, NULL), -HM_ENOTFOUND);
}

/* What nobody has written anew for a while is another time's. */
static void alpha_is_believed_for_its_time(void **state)
{
	static const struct {
		uint64_t until_ms;
		uint64_t wait_ms; /* after 30 ms of spans, at a half of the card and 20 ms of tokens */
	} cases[] = { { 0, 0 }, { 1001, 0 }, { 1000, 20 }, { 1, 20 }, { 11000, 0 }, { 11001, 20 } };

	(void)state;
	for (unsigned i = 0; i < HM_COUNT(cases); i++) {
		struct region_compute c = { .alpha = ONE / 2, .alpha_until_ns = cases[i].until_ms * MS };
		uint64_t wait;

		assert_int_equal(bucket_take(&c, 50, 1000 * MS, 30 * MS), 0);
		wait = bucket_take(&c, 50, 1000 * MS, MS);
		assert_int_equal((wait + MS / 2) / MS, cases[i].wait_ms);
	}
}

/* An error is taken over once, by whoever comes first, and one that nobody could have made is not. */
static void errors_are_charged_once(void **state)
{
	struct region_compute c = { .error_ns = 30 * MS };

	(void)state;
	assert_int_equal(bucket_take(&c, 50, 1000000 * MS, MS), 20 * MS + 1); /* 20 were there: 10 of debt */
	assert_int_equal(bucket_take(&c, 50, 1000021 * MS, MS), 0);
	c.error_ns = (uint64_t) - (int64_t)(5000 * MS);
	assert_int_not_equal(bucket_take(&c, 50, 1000021 * MS, MS), 0);
	assert_int_equal(c.settled_ns, c.error_ns);
}

/* Half of the spans were others' slices: alpha goes to a half, whatever came before decays. */
static void alpha_follows_the_samples(void **state)
{
	struct alpha a = { 0 };
	uint64_t spans = 0, now = 1000 * MS;

	(void)state;
	alpha_sample(&a, now - 200 * MS, now, MS);
	assert_int_equal(a.value, 0); /* nothing noted yet */
	for (unsigned i = 0; i < 100; i++) {
		alpha_note(&a, now, spans);
		if (i > 0)
			alpha_sample(&a, now - 200 * MS, now, i < 50 ? 100 * MS : 50 * MS);
		if (i == 49)
			assert_in_range(a.value, ONE - 1, ONE);
		now += 200 * MS;
		spans += 100 * MS;
	}
	assert_in_range(a.value, ONE / 2 - 10, ONE / 2 + 10);
	assert_in_range((uint64_t)-a.error_ns, 50 * MS, 400 * MS); /* what was charged too much while alpha followed */
}

/* What a container writes to its spans costs it what was learned, and nothing more. */
static void nonsense_is_forgotten(void **state)
{
	static const uint64_t spans[] = { INT64_MAX, UINT64_MAX, 1ULL << 63, 0 };
	struct alpha a = { 0 };
	uint64_t now = 1000 * MS;

	(void)state;
	for (unsigned i = 0; i < 40; i++, now += 200 * MS) {
		alpha_note(&a, now, i < 20 ? spans[i % HM_COUNT(spans)] : (i - 19) * 200 * MS);
		alpha_sample(&a, now - 200 * MS, now, 100 * MS);
		assert_true(a.value == 0 || (a.value >= BUCKET_ALPHA_MIN && a.value <= BUCKET_ALPHA_MAX));
	}
	assert_in_range(a.value, ONE / 2 - 300, ONE / 2 + 300);
	alpha_forget(&a);
	assert_int_equal(a.value, 0);
}

/* Spans that might be true, and are not: the error grows by what a bucket believes, so that no container can bring it
 * to the end of its word. */
static void the_error_grows_slowly(void **state)
{
	enum { SAMPLES = 40 };
	struct alpha a = { 0 };
	uint64_t now = 1000 * MS;

	(void)state;
	for (unsigned i = 0; i <= SAMPLES; i++, now += 200 * MS) {
		alpha_note(&a, now, i * 15000000 * MS);
		alpha_sample(&a, now - 200 * MS, now, 100 * MS);
	}
	assert_in_range((uint64_t)-a.error_ns, 1, SAMPLES * (uint64_t)BUCKET_ERROR_NS);
}

/* Before a pause is long ago: the first sample after it says more than all before. */
static void old_samples_fade_in_a_pause(void **state)
{
	struct alpha a = { 0 };
	uint64_t now = 1000 * MS;

	(void)state;
	for (unsigned i = 0; i < 20; i++, now += 200 * MS) {
		alpha_note(&a, now, i * 200 * MS);
		alpha_sample(&a, now - 200 * MS, now, 50 * MS);
	}
	assert_in_range(a.value, ONE / 4 - 10, ONE / 4 + 10);
	now += 600000 * MS;
	alpha_note(&a, now, 4000 * MS);
	alpha_note(&a, now + 200 * MS, 4200 * MS);
	alpha_sample(&a, now, now + 200 * MS, 200 * MS);
	assert_in_range(a.value, ONE - 10, ONE);
}

/* A sample that ended before the last note is held against the spans of its own time. */
static void late_samples_meet_their_spans(void **state)
{
	struct alpha a = { 0 };

	(void)state;
	alpha_note(&a, 1000 * MS, 0);
	alpha_note(&a, 1200 * MS, 100 * MS);
	alpha_note(&a, 1400 * MS, 1100 * MS);
	alpha_sample(&a, 1000 * MS, 1200 * MS, 50 * MS);
	assert_in_range(a.value, ONE / 2 - 1, ONE / 2 + 1);
	alpha_sample(&a, 1400 * MS, 1600 * MS, 50 * MS); /* not noted yet */
	alpha_sample(&a, 1200 * MS, 1200 * MS, 50 * MS);
	assert_in_range(a.value, ONE / 2 - 1, ONE / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(words_reach_who_has_it_mapped, setup, teardown),
		cmocka_unit_test_setup_teardown(only_what_differs_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(a_region_that_is_gone_is_noticed, setup, teardown),
		cmocka_unit_test(alpha_is_believed_for_its_time),
		cmocka_unit_test(nonsense_is_forgotten),
		cmocka_unit_test(the_error_grows_slowly),
		cmocka_unit_test(old_samples_fade_in_a_pause),
		cmocka_unit_test(errors_are_charged_once),
		cmocka_unit_test(alpha_follows_the_samples),
		cmocka_unit_test(late_samples_meet_their_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
