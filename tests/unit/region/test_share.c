/* What is written to a region from outside, and the arithmetic of it. */
#include "region/alpha.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
	struct region_map m;
	uint64_t spans;

	(void)state;
	assert_int_equal(region_map_file(path, &m, NULL), 0);
	m.r->compute[1].spans_ns = 77;
	assert_int_equal(region_share_read(path, "GPU-b", &spans, NULL), 0);
	assert_int_equal(spans, 77);
	assert_int_equal(region_share_write(path, "GPU-b", 5, -6, NULL), 0);
	assert_int_equal(m.r->compute[1].alpha, 5);
	assert_int_equal((int64_t)m.r->compute[1].error_ns, -6);
	assert_int_equal(m.r->compute[0].alpha, 0);
	region_unmap(&m);
	assert_int_equal(region_share_read(path, "GPU-c", &spans, NULL), -HM_ENOTFOUND);
	assert_int_equal(region_share_write(path, "GPU-c", 1, 1, NULL), -HM_ENOTFOUND);
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(region_share_read(path, "GPU-b", &spans, NULL), -HM_EPROTO);
	assert_int_equal(region_share_write(path, "GPU-b", 1, 1, NULL), -HM_EPROTO);
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
		cmocka_unit_test(errors_are_charged_once),
		cmocka_unit_test(alpha_follows_the_samples),
		cmocka_unit_test(late_samples_meet_their_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
