#include "kube/stats.h"

#include "harness/unit.h"

static void counts_by_verb_and_code(void **state)
{
	struct kube_stats s = { 0 };

	(void)state;
	kube_stats_count(&s, KUBE_GET, 200, 5);
	kube_stats_count(&s, KUBE_GET, 200, 6);
	kube_stats_count(&s, KUBE_PATCH, 200, 10000);
	kube_stats_count(&s, KUBE_PATCH, 0, 10001);
	assert_int_equal(s.codes_used, 2);
	assert_int_equal(s.codes[0].code, 200);
	assert_int_equal(s.codes[0].count[KUBE_GET], 2);
	assert_int_equal(s.codes[0].count[KUBE_PATCH], 1);
	assert_int_equal(s.codes[1].count[KUBE_PATCH], 1);
	assert_int_equal(s.latency[KUBE_GET].buckets[0], 1);
	assert_int_equal(s.latency[KUBE_GET].buckets[1], 1);
	assert_int_equal(s.latency[KUBE_PATCH].buckets[10], 1);
	assert_int_equal(s.latency[KUBE_PATCH].buckets[11], 1);
	assert_int_equal(s.latency[KUBE_PATCH].count, 2);
	assert_int_equal(s.latency[KUBE_PATCH].sum_ms, 20001);
}

/* A server cannot make the table grow: what finds no place is counted together. */
static void odd_codes_share_the_last_place(void **state)
{
	struct kube_stats s = { 0 };
	uint64_t sum = 0;

	(void)state;
	for (int code = 200; code < 300; code++)
		kube_stats_count(&s, KUBE_GET, code, 1);
	kube_stats_count(&s, KUBE_GET, 200, 1);
	assert_int_equal(s.codes_used, KUBE_STATS_CODES);
	assert_int_equal(s.codes[0].count[KUBE_GET], 2);
	assert_int_equal(s.codes[KUBE_STATS_CODES - 1].code, 999);
	assert_int_equal(s.codes[KUBE_STATS_CODES - 1].count[KUBE_GET], 100 - (KUBE_STATS_CODES - 1));
	for (unsigned i = 0; i < s.codes_used; i++)
		sum += s.codes[i].count[KUBE_GET];
	assert_int_equal(sum, 101);
}

static void verbs_have_their_methods(void **state)
{
	(void)state;
	assert_string_equal(kube_verb_name(KUBE_GET), "GET");
	assert_string_equal(kube_verb_name(KUBE_DELETE), "DELETE");
	assert_string_equal(kube_verb_name(KUBE_WATCH), "WATCH");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_by_verb_and_code),
		cmocka_unit_test(odd_codes_share_the_last_place),
		cmocka_unit_test(verbs_have_their_methods),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
