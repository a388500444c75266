#include "base/duration.h"

#include "harness/unit.h"

static const struct {
	const char *text;
	bool ok;
	uint64_t ms;
} cases[] = {
	{ "0", true, 0 },
	{ "5m", true, 300000 },
	{ "28s", true, 28000 },
	{ "1h30m", true, 5400000 },
	{ "1.5s", true, 1500 },
	{ ".5s", true, 500 },
	{ "2.s", true, 2000 },
	{ "500ms", true, 500 },
	{ "1500us", true, 1 },
	{ "\u00b5s", false, 0 },
	{ "2000\u00b5s", true, 2 },
	{ "1999999ns", true, 1 },
	{ "0.1h", true, 360000 },
	{ "1m1m", true, 120000 },
	{ "0.0000000000000000001h", true, 0 },
	{ "", false, 0 },
	{ "5", false, 0 },
	{ "5 m", false, 0 },
	{ "-5m", false, 0 },
	{ "+5m", false, 0 },
	{ "5d", false, 0 },
	{ ".s", false, 0 },
	{ "1.2.3s", false, 0 },
	{ "5mm", false, 0 },
	{ "99999999999999999999h", false, 0 },
	{ "5124096h", false, 0 }, /* beyond 64 bits of nanoseconds */
	{ "1h1ms", false, 0 },    /* above the most, which is 1h here */
};

static void test_parse(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint64_t ms = 0;
		bool wide = cases[i].ms > 3600000;

		if (duration_parse(cases[i].text, wide ? 86400000 : 3600000, &ms) != cases[i].ok || ms != cases[i].ms)
			fail_msg("\"%s\": %llu", cases[i].text, (unsigned long long)ms);
	}
}

static void test_print(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} prints[] = {
		{ 0, "0s" },           { 1, "1ms" },
		{ 999, "999ms" },      { 1000, "1s" },
		{ 1500, "1.5s" },      { 1050, "1.05s" },
		{ 28000, "28s" },      { 300000, "5m0s" },
		{ 3600000, "1h0m0s" }, { 90061001, "25h1m1.001s" },
		{ 60000, "1m0s" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(prints); i++) {
		hm_auto_str out = { 0 };

		duration_add(&out, prints[i].ms);
		assert_string_equal(str_text(&out), prints[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_parse), cmocka_unit_test(test_print) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
