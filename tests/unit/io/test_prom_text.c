#include "io/prom_text.h"

#include "harness/unit.h"

static const struct prom_family gauge = { "a_bytes", PROM_GAUGE, "How much." };
static const struct prom_family calls = { "calls_seconds", PROM_HISTOGRAM, "How long." };

static void a_family_and_its_samples(void **state)
{
	hm_auto_str out = { 0 };

	(void)state;
	prom_add_head(&out, &gauge);
	prom_add(&out, &gauge, NULL, UINT64_MAX);
	prom_add(&out, &gauge, PROM_LABELS({ "pod", "p" }, { "container", "" }), 0);
	assert_string_equal(str_text(&out), "# HELP a_bytes How much.\n# TYPE a_bytes gauge\n"
					    "a_bytes 18446744073709551615\n"
					    "a_bytes{pod=\"p\",container=\"\"} 0\n");
}

static void label_values_cannot_break_the_page(void **state)
{
	static const struct {
		const char *value, *text;
	} cases[] = {
		{ "a\"b\\c\nd", "a\\\"b\\\\c\\nd" },
		{ "\xc3\xbc", "\xc3\xbc" },
		{ "x\xff y\xc3\xbc", "x? y??" },
		{ "} 1\na_bytes{", "} 1\\na_bytes{" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str out = { 0 }, want = { 0 };

		prom_add(&out, &gauge, PROM_LABELS({ "l", cases[i].value }), 1);
		str_addf(&want, "a_bytes{l=\"%s\"} 1\n", cases[i].text);
		assert_string_equal(str_text(&out), str_text(&want));
	}
}

static void millionths(void **state)
{
	static const struct {
		uint64_t micros;
		const char *text;
	} cases[] = { { 0, "0" },        { 1, "0.000001" },       { 1000000, "1" },  { 1500000, "1.5" },
		      { 50, "0.00005" }, { 12034500, "12.0345" }, { 250000, "0.25" } };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str out = { 0 }, want = { 0 };

		prom_add_micros(&out, &gauge, NULL, cases[i].micros);
		str_addf(&want, "a_bytes %s\n", cases[i].text);
		assert_string_equal(str_text(&out), str_text(&want));
	}
}

static void a_histogram_adds_up(void **state)
{
	static const uint64_t bounds[] = { 500, 1000000 }, buckets[] = { 3, 0, 2 };
	const struct prom_buckets b = { bounds, buckets, 2, 4000100 };
	hm_auto_str out = { 0 };

	(void)state;
	prom_add_histogram(&out, &calls, PROM_LABELS({ "verb", "GET" }), &b);
	prom_add_histogram(&out, &calls, NULL, &b);
	assert_string_equal(str_text(&out), "calls_seconds_bucket{verb=\"GET\",le=\"0.0005\"} 3\n"
					    "calls_seconds_bucket{verb=\"GET\",le=\"1\"} 3\n"
					    "calls_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 5\n"
					    "calls_seconds_sum{verb=\"GET\"} 4.0001\n"
					    "calls_seconds_count{verb=\"GET\"} 5\n"
					    "calls_seconds_bucket{le=\"0.0005\"} 3\n"
					    "calls_seconds_bucket{le=\"1\"} 3\n"
					    "calls_seconds_bucket{le=\"+Inf\"} 5\n"
					    "calls_seconds_sum 4.0001\n"
					    "calls_seconds_count 5\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_family_and_its_samples),
		cmocka_unit_test(label_values_cannot_break_the_page),
		cmocka_unit_test(millionths),
		cmocka_unit_test(a_histogram_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
