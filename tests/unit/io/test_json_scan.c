#include "io/json_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "harness/unit.h"

/* A copy whose end is the end of its memory: what reads beyond it is seen by the sanitizers. */
struct copy {
	char *text;
	size_t n;
};

static struct copy copy_of(const char *text)
{
	struct copy c = { malloc(strlen(text) + 1), strlen(text) };

	/* At the end of the block, not NUL-terminated. */
	c.text = realloc(c.text, c.n > 0 ? c.n : 1);
	memcpy(c.text, text, c.n);
	return c;
}

static int skip_all(const char *text, struct hm_err *e)
{
	struct copy c = copy_of(text);
	struct json_scan s = json_scan_of(c.text, c.n);
	struct piece value = json_scan_skip(&s);
	int r = json_scan_finish(&s, e);

	/* Skipping changes nothing, and gives the value without the space around it. */
	assert_memory_equal(c.text, text, c.n);
	if (r == 0) {
		assert_true(value.n > 0 && strchr(" \t\n\r", value.p[0]) == NULL);
		assert_true(strchr(" \t\n\r", value.p[value.n - 1]) == NULL);
	}
	free(c.text);
	return r;
}

static void test_good(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		" { } ",
		"[[[]]]",
		"null",
		"true",
		"false",
		"0",
		"-0",
		"-1.5e+10",
		"1E5",
		"\"\"",
		"\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
		"{\"a\":1,\"b\":[1,2,{\"c\":null}],\"d\":{}}",
		"[{}, {\"a\":[]} ,[], 1]",
		"\n[ 1 ,\t2 ]\r",
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		struct hm_err e = { 0 };

		if (skip_all(texts[i], &e) != 0)
			fail_msg("%s: %s", texts[i], e.msg);
	}
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "EOF" },
		{ " \n", "EOF" },
		{ "{", "unexpected EOF" },
		{ "[1", "unexpected EOF" },
		{ "[1,", "unexpected EOF" },
		{ "{\"a", "unexpected EOF" },
		{ "{\"a\"", "unexpected EOF" },
		{ "{\"a\":", "unexpected EOF" },
		{ "\"\\", "unexpected EOF" },
		{ "\"\\u12", "unexpected EOF" },
		{ "tru", "unexpected EOF" },
		{ "-", "unexpected EOF" },
		{ "1.", "unexpected EOF" },
		{ "1e", "unexpected EOF" },
		{ "{}x", "JSON: byte 2: something stands behind the value" },
		{ "1 2", "JSON: byte 2: something stands behind the value" },
		{ "[1,]", "JSON: byte 3: no value begins like this" },
		{ "[,1]", "JSON: byte 1: no value begins like this" },
		{ "[1 2]", "JSON: byte 3: a comma is missing" },
		{ "{\"a\":1,}", "JSON: byte 7: a key is wanted here" },
		{ "{1:2}", "JSON: byte 1: a key is wanted here" },
		{ "{\"a\" 1}", "JSON: byte 5: a colon is missing" },
		{ "{\"a\":1]", "JSON: byte 6: a comma is missing" },
		{ "[1}", "JSON: byte 2: a comma is missing" },
		{ "]", "JSON: byte 0: no value begins like this" },
		{ "nul!", "JSON: byte 0: no value begins like this" },
		{ "01", "JSON: byte 1: something stands behind the value" },
		{ "+1", "JSON: byte 0: no value begins like this" },
		{ "-x", "JSON: byte 1: a digit is missing" },
		{ "\"\\x\"", "JSON: byte 2: no such escape" },
		{ "\"\\u12g4\"", "JSON: byte 5: \\u wants four hexadecimal digits" },
		{ "\"a\nb\"", "JSON: byte 2: a control character in a text" },
		{ "NaN", "JSON: byte 0: no value begins like this" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct hm_err e = { 0 };

		if (skip_all(cases[i].text, &e) != -HM_EPROTO || strcmp(e.msg, cases[i].says) != 0)
			fail_msg("%s: \"%s\"", cases[i].text, e.msg);
	}
}

static void test_depth(void **state)
{
	char text[2 * JSON_SCAN_MAX_DEPTH + 3];
	struct hm_err e;

	(void)state;
	for (int extra = 0; extra < 2; extra++) {
		size_t n = JSON_SCAN_MAX_DEPTH + (size_t)extra;

		memset(text, '[', n);
		memset(text + n, ']', n);
		text[2 * n] = '\0';
		assert_int_equal(skip_all(text, &e), extra == 0 ? 0 : -HM_EPROTO);
	}
	assert_non_null(strstr(e.msg, "nested too deeply"));
}

static void test_texts(void **state)
{
	static const struct {
		const char *text, *value;
	} cases[] = {
		{ "\"\"", "" },
		{ "\"node-1.example\"", "node-1.example" },
		{ "\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz" },
		{ "\"\\u0041\\u00e9\\u20AC\"", "A\u00e9\u20ac" },
		{ "\"\\ud83d\\ude00!\"", "\U0001f600!" },
		/* Halves of a pair, and what no C text can hold. */
		{ "\"\\ud83d\"", "\ufffd" },
		{ "\"\\ud83dx\"", "\ufffdx" },
		{ "\"\\ude00\\ud83d\"", "\ufffd\ufffd" },
		{ "\"\\ud83d\\u0041\"", "\ufffdA" },
		{ "\"a\\u0000b\"", "a\ufffdb" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct copy c = copy_of(cases[i].text);
		struct json_scan s = json_scan_of(c.text, c.n);
		char *text = json_scan_text(&s);
		struct hm_err e;

		assert_non_null(text);
		assert_string_equal(text, cases[i].value);
		assert_int_equal(json_scan_finish(&s, &e), 0);
		free(c.text);
	}
}

/* Members in order, whatever is skipped or read between them. */
static void test_walk(void **state)
{
	struct copy c = copy_of("{\"skip\":{\"x\":[1,{}]},\"n\\u0061mes\":[\"a\",\"b\"],\"none\":null,\"last\":\"z\"}");
	struct json_scan s = json_scan_of(c.text, c.n);
	hm_auto_str seen = { 0 };
	char *key;
	struct hm_err e;

	(void)state;
	assert_int_equal(json_scan_kind(&s), JSON_OBJECT);
	assert_true(json_scan_object(&s));
	while (json_scan_member(&s, &key)) {
		str_add(&seen, key);
		if (strcmp(key, "names") == 0) {
			assert_true(json_scan_array(&s));
			while (json_scan_item(&s))
				str_add(&seen, json_scan_text(&s));
		} else if (strcmp(key, "skip") == 0) {
			struct piece p = json_scan_skip(&s);

			assert_true(piece_is(p, "{\"x\":[1,{}]}"));
		} else {
			json_scan_skip(&s);
		}
	}
	assert_int_equal(json_scan_finish(&s, &e), 0);
	assert_string_equal(str_text(&seen), "skipnamesabnonelast");
	free(c.text);
}

/* Failure is sticky: every read says "no more". */
static void test_sticky(void **state)
{
	struct copy c = copy_of("{\"a\":!,\"b\":[\"x\"]}");
	struct json_scan s = json_scan_of(c.text, c.n);
	char *key;
	struct hm_err e;

	(void)state;
	assert_true(json_scan_object(&s) && json_scan_member(&s, &key));
	assert_int_equal(json_scan_skip(&s).n, 0);
	assert_false(json_scan_member(&s, &key) || json_scan_array(&s) || json_scan_item(&s) || json_scan_object(&s));
	assert_null(json_scan_text(&s));
	assert_int_equal(json_scan_kind(&s), JSON_NONE);
	assert_int_equal(json_scan_finish(&s, &e), -HM_EPROTO);
	assert_string_equal(e.msg, "JSON: byte 5: no value begins like this");
	free(c.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_good),  cmocka_unit_test(test_bad),
					    cmocka_unit_test(test_depth), cmocka_unit_test(test_texts),
					    cmocka_unit_test(test_walk),  cmocka_unit_test(test_sticky) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
