#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

static void appends(void **state)
{
	hm_auto_str s = { 0 };

	(void)state;
	assert_string_equal(str_text(&s), "");
	str_add(&s, "one");
	str_addc(&s, ' ');
	str_add_n(&s, "two!", 3);
	str_addf(&s, " %d %s", 3, "four");
	assert_string_equal(str_text(&s), "one two 3 four");
	assert_int_equal(s.n, strlen("one two 3 four"));
	str_clear(&s);
	assert_string_equal(str_text(&s), "");
	str_add(&s, "again");
	assert_string_equal(str_text(&s), "again");
	assert_false(str_failed(&s));
}

static void formats_texts_of_every_length(void **state)
{
	hm_auto_str long_text = { 0 };

	(void)state;
	for (size_t n = 0; n < 600; n++) {
		hm_auto_str s = { 0 };

		str_addf(&s, "<%s>", str_text(&long_text));
		assert_int_equal(s.n, n + 2);
		assert_int_equal(strlen(s.p), n + 2);
		assert_int_equal(s.p[n + 1], '>');
		str_addc(&long_text, 'x');
	}
}

static void keeps_nul_bytes(void **state)
{
	hm_auto_str s = { 0 };

	(void)state;
	str_add_n(&s, "a\0b", 3);
	assert_int_equal(s.n, 3);
	assert_memory_equal(s.p, "a\0b\0", 4);
}

static void escapes_every_byte_that_is_not_plain(void **state)
{
	hm_auto_str all = { 0 };
	char want[8];

	(void)state;
	for (int c = 0; c < 256; c++) {
		hm_auto_str s = { 0 };
		char byte = (char)c;

		str_add_escaped(&s, &byte, 1);
		if (c == '"' || c == '\\')
			snprintf(want, sizeof want, "\\%c", c);
		else if (c == '\n')
			snprintf(want, sizeof want, "\\n");
		else if (c == '\t')
			snprintf(want, sizeof want, "\\t");
		else if (c >= 0x20 && c < 0x7f)
			snprintf(want, sizeof want, "%c", c);
		else
			snprintf(want, sizeof want, "\\x%02x", (unsigned)c);
		assert_string_equal(str_text(&s), want);
	}
	str_add_escaped(&all, "", 0);
	assert_string_equal(str_text(&all), "");
}

static void a_wiped_one_is_empty_and_usable(void **state)
{
	hm_auto_secret s = { 0 };

	(void)state;
	str_wipe(&s);
	str_add(&s, "secret");
	str_wipe(&s);
	assert_null(s.p);
	assert_int_equal(s.n, 0);
	str_add(&s, "another");
	assert_string_equal(str_text(&s), "another");
}

/* What `date -u -d @SECONDS` says. */
static void dates(void **state)
{
	static const struct {
		uint64_t ms;
		const char *want;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00" },
		{ 951782399999, "2000-02-28T23:59:59" },
		{ 951868800000, "2000-03-01T00:00:00" },
		{ 1709164800000, "2024-02-29T00:00:00" },
		{ 1796083199001, "2026-11-30T23:59:59" },
		{ 4107542400000, "2100-03-01T00:00:00" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str s = { 0 };

		str_add_utc(&s, cases[i].ms);
		assert_string_equal(str_text(&s), cases[i].want);
	}
}

static void take_moves_the_text(void **state)
{
	struct str s = { 0 };
	char *text = str_take(&s);

	(void)state;
	assert_string_equal(text, "");
	free(text);
	str_add(&s, "mine");
	text = str_take(&s);
	assert_string_equal(text, "mine");
	assert_null(s.p);
	assert_int_equal(s.n, 0);
	free(text);
}

static void an_impossible_length_fails_and_stays_failed(void **state)
{
	hm_auto_str s = { 0 };

	(void)state;
	str_add(&s, "x");
	str_add_n(&s, "y", SIZE_MAX / 2);
	assert_true(str_failed(&s));
	str_add(&s, "z");
	assert_string_equal(str_text(&s), "x");
	assert_null(str_take(&s));
	str_add(&s, "new");
	assert_string_equal(str_text(&s), "new");
}

static int build_text(void *arg)
{
	hm_auto_str s = { 0 };
	char *text;

	(void)arg;
	for (int i = 0; i < 100; i++)
		str_addf(&s, "%d, %s", i, "a text that makes it grow now and then");
	text = str_take(&s);
	if (text == NULL)
		return -1;
	free(text);
	return 0;
}

static void survives_every_failed_allocation(void **state)
{
	(void)state;
	sweep_check("str", build_text, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends),
		cmocka_unit_test(formats_texts_of_every_length),
		cmocka_unit_test(keeps_nul_bytes),
		cmocka_unit_test(escapes_every_byte_that_is_not_plain),
		cmocka_unit_test(a_wiped_one_is_empty_and_usable),
		cmocka_unit_test(dates),
		cmocka_unit_test(take_moves_the_text),
		cmocka_unit_test(an_impossible_length_fails_and_stays_failed),
		cmocka_unit_test(survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
