#include "io/yaml.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/unit.h"

/* Against JSON texts written by hand, as Kubernetes' own YAML reader gives them. */
static void trees(void **state)
{
	static const struct {
		const char *yaml, *json;
	} cases[] = {
		{ "a: 1", "{\"a\":1}" },
		{ "{a: [1, 2], b: {c: x}}", "{\"a\":[1,2],\"b\":{\"c\":\"x\"}}" },
		{ "- a\n- - b\n  - c\n", "[\"a\",[\"b\",\"c\"]]" },
		{ "x", "\"x\"" },
		{ "a: null\nb: ~\nc:\nd: ''\n", "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\"}" },
		{ "a: true\nb: False\nc: yes\nd: no\ne: on",
		  "{\"a\":true,\"b\":false,\"c\":\"yes\",\"d\":\"no\",\"e\":\"on\"}" },
		{ "[0, -1, 1.5, 1e3, -0.5E-2]", "[0,-1,1.5,1000,-0.005]" },
		/* Texts that other readers take for numbers: they differ in what they make of them, so we make none. */
		{ "[010, 0x1f, 0o7, +1, .5, 1., 1_000, .inf, .nan, 1:30]",
		  "[\"010\",\"0x1f\",\"0o7\",\"+1\",\".5\",\"1.\",\"1_000\",\".inf\",\".nan\",\"1:30\"]" },
		{ "[1e999, -, '1', \"1\"]", "[\"1e999\",\"-\",\"1\",\"1\"]" },
		{ "a: |\n  one\n  two\nb: >-\n  one\n  two\n", "{\"a\":\"one\\ntwo\\n\",\"b\":\"one two\"}" },
		{ "a: &x {n: 1}\nb: *x\nc: [*x, *x]", "{\"a\":{\"n\":1},\"b\":{\"n\":1},\"c\":[{\"n\":1},{\"n\":1}]}" },
		{ "a: &x 1\nb: &x 2\nc: *x", "{\"a\":1,\"b\":2,\"c\":2}" },
		{ "--- # comment\na: 1\n...\n", "{\"a\":1}" },
		{ "1: x", "{\"1\":\"x\"}" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cJSON) *tree = NULL, *want = NULL;
		struct hm_err e = { 0 };

		if (yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &tree, &e) < 0)
			fail_msg("%s: %s", cases[i].yaml, e.msg);
		assert_int_equal(json_parse(cases[i].json, strlen(cases[i].json), &want, &e), 0);
		if (!cJSON_Compare(tree, want, true))
			fail_msg("%s is not %s", cases[i].yaml, cases[i].json);
	}
}

static void errors_name_the_line(void **state)
{
	static const struct {
		const char *yaml, *error;
		int code;
	} cases[] = {
		{ "", "empty", HM_EPROTO },
		{ "# only a comment\n", "empty", HM_EPROTO },
		{ "a: 1\nb: 2\na: 3\n", "line 3: key \"a\" is repeated", HM_EPROTO },
		{ "a:\n  ? [x]\n  : y\n", "line 2: a key that is no text", HM_EPROTO },
		{ "a: *x", "line 1: an alias without its anchor", HM_EPROTO },
		{ "a: &x\n  b: *x\n", "line 2: an alias inside its own anchor", HM_EPROTO },
		{ "a: 1\n---\nb: 2\n", "line 2: a second document", HM_EPROTO },
		{ "a: \"x\\0y\"", "line 1: a NUL byte in a text", HM_EPROTO },
		{ "\"a\\0\": 1", "line 1: a NUL byte in a key", HM_EPROTO },
		{ "a: 1\n b: 2\n", "line 2: mapping values are not allowed in this context", HM_EPROTO },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cJSON) *tree = NULL;
		struct hm_err e = { 0 };

		assert_int_equal(yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &tree, &e), -cases[i].code);
		assert_null(tree);
		assert_string_equal(e.msg, cases[i].error);
	}
}

static void a_value_error_names_line_and_key(void **state)
{
	static const char text[] = "name: n\ncards:\n  - memory: 1\n  - memory: ten\n    x: 1\n";
	hm_auto(cJSON) *tree = NULL;
	struct json_at root, cards, second;
	struct hm_err e;
	uint64_t n;

	(void)state;
	assert_int_equal(yaml_parse(text, sizeof text - 1, &tree, &e), 0);
	root = yaml_root(tree);
	assert_int_equal(json_array(&root, "cards", JSON_REQUIRED, &cards, &e), 0);
	second = json_item(&cards, 1);
	assert_int_equal(json_u64(&second, "memory", JSON_REQUIRED, 1, 1000, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "line 4: cards[1].memory: \"ten\" is not a number between 1 and 1000");
	assert_int_equal(json_u64(&second, "y", JSON_REQUIRED, 1, 1000, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "line 4: cards[1].y: is missing");
	assert_int_equal(json_u64(&root, "y", JSON_REQUIRED, 1, 1000, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "line 1: y: is missing");
}

/* 324 bytes that would become 10^9 values. */
static void billion_laughs(void **state)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	str_add(&text, "a: &a [x,x,x,x,x,x,x,x,x,x]\n");
	for (char c = 'b'; c <= 'i'; c++) {
		str_addf(&text, "%c: &%c [", c, c);
		for (int i = 0; i < 10; i++)
			str_addf(&text, "*%c,", c - 1);
		str_add(&text, "]\n");
	}
	assert_int_equal(yaml_parse(str_text(&text), text.n, &tree, &e), -HM_ELIMIT);
	assert_string_equal(e.msg, "line 6: too many values");
}

static void depth_and_keys_are_bounded(void **state)
{
	struct {
		unsigned count;
		int result;
	} depths[] = { { YAML_MAX_DEPTH, 0 }, { YAML_MAX_DEPTH + 1, -HM_ELIMIT } },
	  keys[] = { { YAML_MAX_KEYS, 0 }, { YAML_MAX_KEYS + 1, -HM_ELIMIT } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		hm_auto(cJSON) *nested = NULL, *wide = NULL;
		hm_auto_str text = { 0 };

		for (unsigned k = 0; k < depths[i].count; k++)
			str_addc(&text, '[');
		for (unsigned k = 0; k < depths[i].count; k++)
			str_addc(&text, ']');
		assert_int_equal(yaml_parse(str_text(&text), text.n, &nested, NULL), depths[i].result);
		str_clear(&text);
		for (unsigned k = 0; k < keys[i].count; k++)
			str_addf(&text, "k%u: 1\n", k);
		assert_int_equal(yaml_parse(str_text(&text), text.n, &wide, NULL), keys[i].result);
	}
}

static int parse_scenario(void *arg)
{
	static const char text[] = "a: &x {b: [1, two]}\nc: *x\n";
	hm_auto(cJSON) *tree = NULL;
	struct hm_err e;

	(void)arg;
	return yaml_parse(text, sizeof text - 1, &tree, &e);
}

static void out_of_memory_leaks_nothing(void **state)
{
	struct cJSON_Hooks hooks = { malloc, free };

	(void)state;
	cJSON_InitHooks(&hooks); /* cJSON's allocations fail too; libyaml's own do not */
	sweep_check("yaml_parse", parse_scenario, NULL);
	cJSON_InitHooks(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees),
		cmocka_unit_test(errors_name_the_line),
		cmocka_unit_test(a_value_error_names_line_and_key),
		cmocka_unit_test(billion_laughs),
		cmocka_unit_test(depth_and_keys_are_bounded),
		cmocka_unit_test(out_of_memory_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
