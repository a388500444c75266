#include "io/json.h"

#include <string.h>

#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/unit.h"

static void parse_accepts_one_value(void **state)
{
	static const char *const good[] = { "{}", " [1, 2]\n", "\"x\"", "null", "1e3" };
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(good); i++) {
		hm_auto(cJSON) *tree = NULL;

		assert_int_equal(json_parse(good[i], strlen(good[i]), &tree, &e), 0);
		assert_non_null(tree);
	}
}

static void parse_errors_name_the_place(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "empty" },
		{ "{\n\"a\": 1,\n}", "line 3, column 1: not JSON" },
		{ "{} x", "line 1, column 4: something behind the JSON value" },
		{ "{}\n{}", "line 2, column 1: something behind the JSON value" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cJSON) *tree = NULL;
		struct hm_err e = { 0 };

		assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), &tree, &e), -HM_EPROTO);
		assert_null(tree);
		assert_string_equal(e.msg, cases[i].error);
	}
	/* A NUL byte behind the value is something behind it. */
	hm_auto(cJSON) *tree = NULL;
	assert_int_equal(json_parse("{}\0", 3, &tree, NULL), -HM_EPROTO);
}

static void what_begins_an_object(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		bool object;
	} rows[] = {
		{ "", 0, false },    { "{", 1, true },    { " \t\r\n{", 5, true }, { " \t\r\n{", 4, false },
		{ "\v{", 2, false }, { "\0{", 2, false }, { "[{}]", 4, false },    { "name,cpu\n{", 10, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (json_begins_object(rows[i].text, rows[i].n) != rows[i].object)
			fail_msg("row %zu", i);
}

static const char document[] =
	"{\"t\": \"text\", \"n\": 7, \"big\": 9007199254740993, \"f\": 1.5, \"neg\": -1, \"yes\": true,"
	"\"nothing\": null, \"list\": [{\"a\": \"ten\"}, 3], \"o\": {\"p\": {\"q\": []}}}";

static struct cJSON *tree_of(const char *text)
{
	struct cJSON *tree = NULL;

	assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
	return tree;
}

static void typed_reads(void **state)
{
	hm_auto(cJSON) *tree = tree_of(document);
	struct json_at root = json_root(tree), list, item, o, p;
	const char *text = NULL;
	char copy[5] = "";
	uint64_t n = 0;
	bool yes = false;

	(void)state;
	assert_int_equal(json_text(&root, "t", JSON_REQUIRED, &text, NULL), 0);
	assert_string_equal(text, "text");
	assert_int_equal(json_copy(&root, "t", JSON_REQUIRED, copy, sizeof copy, NULL), 0);
	assert_string_equal(copy, "text");
	assert_int_equal(json_u64(&root, "n", JSON_REQUIRED, 7, 7, &n, NULL), 0);
	assert_int_equal(n, 7);
	assert_int_equal(json_bool(&root, "yes", JSON_REQUIRED, &yes, NULL), 0);
	assert_true(yes);
	assert_int_equal(json_array(&root, "list", JSON_REQUIRED, &list, NULL), 0);
	assert_int_equal(json_count(&list), 2);
	item = json_item(&list, 1);
	assert_int_equal(json_u64(&item, NULL, JSON_REQUIRED, 0, 9, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(json_object(&root, "o", JSON_REQUIRED, &o, NULL), 0);
	assert_int_equal(json_object(&o, "p", JSON_REQUIRED, &p, NULL), 0);
	assert_int_equal(json_array(&p, "q", JSON_REQUIRED, &list, NULL), 0);
	assert_int_equal(json_count(&list), 0);
}

static void absent_optional_values_change_nothing(void **state)
{
	hm_auto(cJSON) *tree = tree_of(document);
	struct json_at root = json_root(tree), inside;
	const char *text = "default";
	uint64_t n = 5;

	(void)state;
	assert_int_equal(json_text(&root, "none", JSON_OPTIONAL, &text, NULL), 0);
	assert_string_equal(text, "default");
	assert_int_equal(json_u64(&root, "nothing", JSON_OPTIONAL, 0, 9, &n, NULL), 0);
	assert_int_equal(n, 5);
	assert_int_equal(json_object(&root, "none", JSON_OPTIONAL, &inside, NULL), 0);
	assert_null(inside.node);
	assert_int_equal(json_u64(&inside, "x", JSON_OPTIONAL, 0, 9, &n, NULL), 0);
	assert_int_equal(json_count(&inside), 0);
}

static void errors_name_the_path(void **state)
{
	hm_auto(cJSON) *tree = tree_of(document);
	struct json_at root = json_root(tree), list, item, o, p;
	static const char *const known[] = { "a", "b" };
	const char *text;
	char small[4];
	struct hm_err e;
	uint64_t n;
	bool yes;

	(void)state;
	assert_int_equal(json_array(&root, "list", JSON_REQUIRED, &list, &e), 0);
	item = json_item(&list, 0);
	assert_int_equal(json_u64(&item, "a", JSON_REQUIRED, 1, 1000, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "list[0].a: \"ten\" is not a number between 1 and 1000");
	assert_int_equal(json_u64(&root, "f", JSON_REQUIRED, 0, 9, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "f: a number with a fraction is not a number between 0 and 9");
	assert_int_equal(json_u64(&root, "neg", JSON_REQUIRED, 0, 9, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "neg: -1 is not a number between 0 and 9");
	/* 2^53 + 1 is not what a double can hold. */
	assert_int_equal(json_u64(&root, "n", JSON_REQUIRED, 0, UINT64_MAX, &n, &e), 0);
	assert_int_equal(json_u64(&root, "n", JSON_REQUIRED, 8, 9, &n, &e), -HM_EINVAL);
	assert_int_equal(json_text(&root, "none", JSON_REQUIRED, &text, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "none: is missing");
	assert_int_equal(json_text(&root, "list", JSON_REQUIRED, &text, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "list: a list is not a text");
	assert_int_equal(json_bool(&root, "n", JSON_REQUIRED, &yes, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "n: 7 is not true or false");
	assert_int_equal(json_copy(&root, "t", JSON_REQUIRED, small, sizeof small, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "t: is longer than 3 bytes");
	item = json_item(&list, 1);
	assert_int_equal(json_u64(&item, "a", JSON_REQUIRED, 0, 1, &n, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "list[1]: is no object");
	assert_int_equal(json_object(&root, "o", JSON_REQUIRED, &o, &e), 0);
	assert_int_equal(json_object(&o, "p", JSON_REQUIRED, &p, &e), 0);
	assert_int_equal(json_known(&p, known, HM_COUNT(known), &e), -HM_EINVAL);
	assert_string_equal(e.msg, "o.p.q: unknown key");
}

static int parse_scenario(void *arg)
{
	hm_auto(cJSON) *tree = NULL;
	struct hm_err e;

	(void)arg;
	return json_parse(document, sizeof document - 1, &tree, &e);
}

static void out_of_memory_leaks_nothing(void **state)
{
	struct cJSON_Hooks hooks = { malloc, free };

	(void)state;
	cJSON_InitHooks(&hooks); /* cJSON's allocations fail too */
	sweep_check("json_parse", parse_scenario, NULL);
	cJSON_InitHooks(NULL);
}

static void values_are_counted_before(void **state)
{
	static const struct {
		const char *text;
		size_t values;
	} cases[] = {
		{ "1", 1 },
		{ "[[],[]]", 3 },
		{ "{\"a,[{\":1,\"b\":[2,3]}", 5 },
		{ "\"\\\",,,\\\\\"", 1 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		size_t n = strlen(cases[i].text), few = cases[i].values - 1;
		struct cJSON *tree = NULL;
		struct hm_err e;

		/* A bracket counts for what is in it, too. */
		assert_int_equal(json_parse_within(cases[i].text, n, 2 * cases[i].values, &tree, &e), 0);
		json_free(tree);
		if (few > 0)
			assert_int_equal(json_parse_within(cases[i].text, n, few, &tree, &e), -HM_ELIMIT);
	}
	assert_int_equal(json_parse_within("\"", 1, 1, &(struct cJSON *) { NULL }, NULL), -HM_EPROTO);
	assert_int_equal(json_parse_within("\"\\", 2, 1, &(struct cJSON *) { NULL }, NULL), -HM_EPROTO);
}

static void arrays_are_emptied(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "{\"m\":[1,[2],{\"a\":[]}],\"b\":[3]}", "{\"m\":[              ],\"b\":[3]}" },
		{ "{\"m\" : [\"]\\\"\", 1 ]}", "{\"m\" : [         ]}" },
		{ "{\"m\":[]}", "{\"m\":[]}" },
		{ "[{\"m\":[1]},{\"m\":[2]}]", "[{\"m\":[ ]},{\"m\":[ ]}]" },
		{ "{\"m\":{\"m\":[1]}}", "{\"m\":{\"m\":[ ]}}" },
		{ "{\"m\":\"[1]\",\"x\":\"m\"}", "{\"m\":\"[1]\",\"x\":\"m\"}" },
		{ "{\"x\":\"\\\"m\\\":[1]\"}", "{\"x\":\"\\\"m\\\":[1]\"}" },
		{ "[\"m\",[1]]", "[\"m\",[1]]" },
		{ "{\"mm\":[1],\"m2\":[1]}", "{\"mm\":[1],\"m2\":[1]}" },
		{ "{\"m\":[1", "{\"m\":[1" },
		{ "{\"m\":[\"1", "{\"m\":[\"1" },
		{ "{\"m\":[1}", "{\"m\":[1}" },
		{ "{\"m\":", "{\"m\":" },
		{ "{\"m\"", "{\"m\"" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		size_t n = strlen(rows[i].text);
		char *text = test_malloc(n + 1); /* its end is seen by the sanitizer */

		memcpy(text, rows[i].text, n);
		json_empty_arrays(text, n, "m");
		text[n] = '\0';
		assert_string_equal(text, rows[i].want);
		test_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_accepts_one_value),
		cmocka_unit_test(parse_errors_name_the_place),
		cmocka_unit_test(what_begins_an_object),
		cmocka_unit_test(typed_reads),
		cmocka_unit_test(absent_optional_values_change_nothing),
		cmocka_unit_test(errors_name_the_path),
		cmocka_unit_test(out_of_memory_leaks_nothing),
		cmocka_unit_test(values_are_counted_before),
		cmocka_unit_test(arrays_are_emptied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
