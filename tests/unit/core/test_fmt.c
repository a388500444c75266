#include "core/fmt.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* The C library's printf is the independent judge: same text and same length for every buffer size. */
#define SAME(cap, ...)                                                                                                 \
	do {                                                                                                           \
		char want[256], have[256];                                                                             \
		int want_len;                                                                                          \
		memset(want, '#', sizeof want);                                                                        \
		memset(have, '#', sizeof have);                                                                        \
		want_len = snprintf(want, cap, __VA_ARGS__);                                                           \
		assert_int_equal(hm_fmt(have, cap, __VA_ARGS__), want_len);                                            \
		if ((cap) > 0)                                                                                         \
			assert_string_equal(have, want);                                                               \
		assert_memory_equal(have + (cap), want + (cap), sizeof have - (cap));                                  \
	} while (0)

static const char *const flags[] = { "", "-", "0", "-0" };
static const char *const widths[] = { "", "1", "3", "8", "25" };

static void numbers_are_as_printf_writes_them(void **state)
{
	static const long long values[] = { 0, 1, -1, 9, 10, -10, 123456, INT_MAX, INT_MIN };
	static const char *const convs[] = { "d", "i", "u", "x" };
	char fmt[64];

	(void)state;
	for (size_t f = 0; f < HM_COUNT(flags); f++)
		for (size_t w = 0; w < HM_COUNT(widths); w++)
			for (size_t c = 0; c < HM_COUNT(convs); c++)
				for (size_t v = 0; v < HM_COUNT(values); v++) {
					snprintf(fmt, sizeof fmt, "<%%%s%s%s>", flags[f], widths[w], convs[c]);
					SAME((size_t)64, fmt, (int)values[v]);
				}
}

static void wide_numbers_are_as_printf_writes_them(void **state)
{
	static const long long values[] = {
		0, 1, -1, INT_MAX, (long long)INT_MAX + 1, LLONG_MAX, LLONG_MIN, -4294967296
	};

	(void)state;
	for (size_t v = 0; v < HM_COUNT(values); v++) {
		SAME((size_t)64, "%lld|%llu|%llx", values[v], (unsigned long long)values[v],
		     (unsigned long long)values[v]);
		SAME((size_t)64, "%ld|%lu|%lx", (long)values[v], (unsigned long)values[v], (unsigned long)values[v]);
		SAME((size_t)64, "%zd|%zu|%zx", (ssize_t)values[v], (size_t)values[v], (size_t)values[v]);
		SAME((size_t)128, "%024lld|%-24lld|%24lld", values[v], values[v], values[v]);
	}
}

static void texts_are_as_printf_writes_them(void **state)
{
	static const char *const texts[] = { "", "a", "hello", "a longer text than the width" };

	(void)state;
	for (size_t t = 0; t < HM_COUNT(texts); t++) {
		SAME((size_t)128, "[%s]", texts[t]);
		SAME((size_t)128, "[%8s]", texts[t]);
		SAME((size_t)128, "[%-8s]", texts[t]);
		SAME((size_t)128, "[%.3s]", texts[t]);
		SAME((size_t)128, "[%.0s]", texts[t]);
		SAME((size_t)128, "[%8.2s]", texts[t]);
		SAME((size_t)128, "[%-8.2s]", texts[t]);
		for (int n = -6; n <= 6; n++) {
			SAME((size_t)128, "[%*s]", n, texts[t]);
			SAME((size_t)128, "[%.*s]", n, texts[t]);
			SAME((size_t)128, "[%*.*s]", n, n, texts[t]);
		}
	}
	SAME((size_t)32, "%c%c%%", 'x', 'y');
	SAME((size_t)32, "%3c|%-3c|", 'x', 'y');
}

static void every_buffer_size_cuts_as_printf_cuts(void **state)
{
	(void)state;
	for (size_t cap = 0; cap <= 40; cap++)
		SAME(cap, "%s=%08d and %-6u.", "key", -42, 7u);
	for (size_t cap = 0; cap <= 4; cap++)
		SAME(cap, "%s", "");
}

static void a_precision_never_reads_past_its_bytes(void **state)
{
	char raw[3] = { 'a', 'b', 'c' }; /* no NUL: ASan sees a read behind it */
	char out[16];

	(void)state;
	assert_int_equal(hm_fmt(out, sizeof out, "%.*s", 3, raw), 3);
	assert_string_equal(out, "abc");
}

static void null_text_and_pointers(void **state)
{
	char out[64], want[64];
	const char *volatile none = NULL;
	int here;

	(void)state;
	hm_fmt(out, sizeof out, "%s", none);
	assert_string_equal(out, "(null)");
	hm_fmt(out, sizeof out, "%.3s", none);
	assert_string_equal(out, "(nu");
	hm_fmt(out, sizeof out, "%p", (void *)&here);
	snprintf(want, sizeof want, "%p", (void *)&here);
	assert_string_equal(out, want);
	hm_fmt(out, sizeof out, "%p", NULL);
	assert_string_equal(out, "0x0");
}

static void an_unknown_conversion_stands_as_it_is(void **state)
{
	static const struct {
		const char *fmt, *want;
	} cases[] = { { "100%", "100%" }, { "%", "%" },       { "%q", "%q" },
		      { "%5", "%5" },     { "a%!b", "a%!b" }, { "%-08q", "%-08q" } };
	char out[32];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const char *volatile fmt = cases[i].fmt;

		assert_int_equal(hm_fmt(out, sizeof out, fmt, 0), strlen(cases[i].want));
		assert_string_equal(out, cases[i].want);
	}
}

static void a_huge_width_is_bounded_by_the_buffer(void **state)
{
	volatile int width = INT_MIN;
	char out[8];

	(void)state;
	assert_true(hm_fmt(out, sizeof out, "%99999999d", 7) > sizeof out);
	assert_string_equal(out, "       ");
	hm_fmt(out, sizeof out, "%*d|", width, 7);
	assert_string_equal(out, "7|");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_as_printf_writes_them),
		cmocka_unit_test(wide_numbers_are_as_printf_writes_them),
		cmocka_unit_test(texts_are_as_printf_writes_them),
		cmocka_unit_test(every_buffer_size_cuts_as_printf_cuts),
		cmocka_unit_test(a_precision_never_reads_past_its_bytes),
		cmocka_unit_test(null_text_and_pointers),
		cmocka_unit_test(an_unknown_conversion_stands_as_it_is),
		cmocka_unit_test(a_huge_width_is_bounded_by_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
