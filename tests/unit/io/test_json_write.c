#include "io/json_write.h"

#include "harness/unit.h"

/* What is UTF-8: RFC 3629, section 4, and the well-formed sequences of Unicode's table 3-7. */
static const struct {
	const char *text, *json;
	int good;
} cases[] = {
	{ "", "\"\"", 1 },
	{ "plain", "\"plain\"", 1 },
	{ "a\"b\\c/", "\"a\\\"b\\\\c/\"", 1 },
	{ "\n\t\x01\x1f\x7f", "\"\\u000a\\u0009\\u0001\\u001f\x7f\"", 1 },
	{ "\xc2\x80\xdf\xbf", "\"\xc2\x80\xdf\xbf\"", 1 },
	{ "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80", "\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\"", 1 },
	{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"", 1 },
	{ "\x80", "\"\xef\xbf\xbd\"", 0 },
	{ "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"", 0 }, /* overlong NUL */
	{ "\xc1\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\"", 0 }, /* overlong */
	{ "\xe0\x9f\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 0 },
	{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 0 }, /* a surrogate */
	{ "\xf0\x8f\xbf\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 0 },
	{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 0 }, /* above U+10FFFF */
	{ "\xf8\x88\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 0 },
	{ "\xff", "\"\xef\xbf\xbd\"", 0 },
	{ "a\xe2\x82", "\"a\xef\xbf\xbd\xef\xbf\xbd\"", 0 }, /* cut */
	{ "a\xe2\x82x", "\"a\xef\xbf\xbd\xef\xbf\xbdx\"", 0 },
};

static void says_what_json_can(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		hm_auto_str out = { 0 };

		json_add_text(&out, cases[i].text);
		assert_string_equal(str_text(&out), cases[i].json);
		if (json_can_say(cases[i].text) != (cases[i].good == 1))
			fail_msg("case %zu", i);
	}
}

static void members_have_commas_between(void **state)
{
	hm_auto_str out = { 0 };

	(void)state;
	json_add_member(&out, "a", NULL);
	assert_string_equal(str_text(&out), "");
	str_add(&out, "{");
	json_add_member(&out, "a", NULL);
	json_add_member(&out, "b\"", "{");
	json_add_name(&out, "c");
	str_add(&out, "{");
	json_add_member(&out, "d", "");
	str_add(&out, "}");
	json_add_member(&out, "e", "x");
	assert_string_equal(str_text(&out), "{\"b\\\"\":\"{\",\"c\":{\"d\":\"\"},\"e\":\"x\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_json_can),
		cmocka_unit_test(members_have_commas_between),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
