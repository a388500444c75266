#include "hami/quantity.h"

#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"
#include "io/json.h"

/* Kinds and values as k8s.io/apimachinery 0.34.4 gives them. */
static const struct {
	const char *text;
	enum quantity_kind kind;
	int64_t value;
} good[] = {
	{ "0", QUANTITY_WHOLE, 0 },
	{ "-0", QUANTITY_WHOLE, 0 },
	{ "007", QUANTITY_WHOLE, 7 },
	{ "+5", QUANTITY_WHOLE, 5 },
	{ "-5", QUANTITY_WHOLE, -5 },
	{ "5.", QUANTITY_WHOLE, 5 },
	{ ".5", QUANTITY_FRACTION, 1 },
	{ "1.50", QUANTITY_FRACTION, 2 },
	{ "-1.5", QUANTITY_FRACTION, -2 },
	{ "1000m", QUANTITY_WHOLE, 1 },
	{ "1500m", QUANTITY_FRACTION, 2 },
	{ "0.5k", QUANTITY_WHOLE, 500 },
	{ "1k", QUANTITY_WHOLE, 1000 },
	{ "2M", QUANTITY_WHOLE, 2000000 },
	{ "7n", QUANTITY_FRACTION, 1 },
	{ "3000000u", QUANTITY_WHOLE, 3 },
	{ "1E", QUANTITY_WHOLE, 1000000000000000000 },
	{ "9223372036854775807", QUANTITY_WHOLE, INT64_MAX },
	{ "9223372036854775808", QUANTITY_HUGE, INT64_MAX },
	{ "-9223372036854775808", QUANTITY_WHOLE, INT64_MIN },
	{ "-9223372036854775809", QUANTITY_HUGE, INT64_MIN },
	{ "100E", QUANTITY_HUGE, INT64_MAX },
	{ "1Ki", QUANTITY_WHOLE, 1024 },
	{ "3Gi", QUANTITY_WHOLE, 3221225472 },
	{ "1.5Gi", QUANTITY_WHOLE, 1610612736 },
	{ "0.1Ki", QUANTITY_FRACTION, 103 },
	{ "8Ei", QUANTITY_WHOLE, INT64_MAX }, /* what has a binary suffix is capped */
	{ "-8Ei", QUANTITY_WHOLE, -INT64_MAX },
	{ "7.9999999999999999999Ei", QUANTITY_WHOLE, INT64_MAX },
	{ "1e3", QUANTITY_WHOLE, 1000 },
	{ "1.5e3", QUANTITY_WHOLE, 1500 },
	{ "15E-1", QUANTITY_FRACTION, 2 },
	{ "1e+4", QUANTITY_WHOLE, 10000 },
	{ "1e400", QUANTITY_HUGE, INT64_MAX },
	{ "1e-400", QUANTITY_FRACTION, 1 },
	{ "0e400", QUANTITY_WHOLE, 0 },
	{ "1e4294967297", QUANTITY_WHOLE, 10 }, /* the exponent is cut to 32 bits */
	{ "0.9999999999", QUANTITY_WHOLE, 1 },  /* ten digits: rounded to nine */
	{ "0.999999999", QUANTITY_FRACTION, 1 },
	{ "-", QUANTITY_WHOLE, 0 },
	{ ".", QUANTITY_WHOLE, 0 },
	{ "k", QUANTITY_WHOLE, 0 },
	{ "Ti", QUANTITY_WHOLE, 0 },
	{ "e5", QUANTITY_WHOLE, 0 },
};

static void test_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(good); i++) {
		struct quantity q = { 9, 99 };
		struct hm_err e = { 0 };

		if (quantity_parse(good[i].text, strlen(good[i].text), &q, &e) < 0)
			fail_msg("%s: %s", good[i].text, e.msg);
		if (q.kind != good[i].kind || q.value != good[i].value)
			fail_msg("%s: kind %d, value %lld", good[i].text, (int)q.kind, (long long)q.value);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",   "abc", "5%",  "1 ",    " 1",  "1e",    "1E+", "e-10",     "Pi",  "1ki",
		"1K", "1mi", "0x5", "1.2.3", "--1", "1e1.5", "1,5", "Infinity", "NaN", "1e99999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct quantity q;
		struct hm_err e = { 0 };

		if (quantity_parse(bad[i], strlen(bad[i]), &q, &e) != -HM_EINVAL)
			fail_msg("%s was taken", bad[i]);
		assert_string_equal(e.msg, "quantities must match the regular expression "
					   "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
	}
}

static void test_json(void **state)
{
	static const struct {
		const char *json;
		enum quantity_kind kind;
		int64_t value;
	} members[] = {
		{ "null", QUANTITY_WHOLE, 0 },         { "3000", QUANTITY_WHOLE, 3000 },
		{ "-1", QUANTITY_WHOLE, -1 },          { "1.5", QUANTITY_FRACTION, 2 },
		{ "1e3", QUANTITY_WHOLE, 1000 },       { "1e21", QUANTITY_HUGE, INT64_MAX },
		{ "\" 10m \"", QUANTITY_FRACTION, 1 }, { "\"2Gi\"", QUANTITY_WHOLE, 2147483648 },
	};
	static const char *const bad[] = { "true", "[]", "{}", "\"x\"", "\" \"", "\"\"" };
	struct quantity q;
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(members); i++) {
		hm_auto(cJSON) *v = NULL;

		assert_int_equal(json_parse(members[i].json, strlen(members[i].json), &v, &e), 0);
		assert_int_equal(quantity_read(v, &q, &e), 0);
		assert_int_equal(q.kind, members[i].kind);
		assert_int_equal(q.value, members[i].value);
	}
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		hm_auto(cJSON) *v = NULL;

		assert_int_equal(json_parse(bad[i], strlen(bad[i]), &v, &e), 0);
		assert_int_equal(quantity_read(v, &q, &e), -HM_EINVAL);
	}
}

static void test_milli(void **state)
{
	static const struct {
		const char *json;
		int64_t milli;
	} amounts[] = {
		{ "\"1500m\"", 1500 },
		{ "\"0.1\"", 100 },
		{ "\"1n\"", 1 },
		{ "\"-1n\"", -1 },
		{ "\"2.0005\"", 2001 },
		{ "\"100u\"", 1 },
		{ "\" 2k\"", 2000000 },
		{ "\"1Ki\"", 1024000 },
		{ "250", 250000 },
		{ "null", 0 },
		{ "\"9223372036854775807m\"", INT64_MAX },
		{ "\"9223372036854776\"", INT64_MAX },
		{ "\"-1E\"", -INT64_MAX },
		{ "\"1e400\"", INT64_MAX },
	};
	struct hm_err e;
	int64_t got;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(amounts); i++) {
		hm_auto(cJSON) *v = NULL;

		assert_int_equal(json_parse(amounts[i].json, strlen(amounts[i].json), &v, &e), 0);
		assert_int_equal(quantity_read_milli(v, &got, &e), 0);
		if (got != amounts[i].milli)
			fail_msg("%s: %lld milli", amounts[i].json, (long long)got);
	}
	assert_int_equal(quantity_read_milli(&(struct cJSON) { .type = cJSON_True }, &got, &e), -HM_EINVAL);
	assert_int_equal(quantity_read_milli(&(struct cJSON) { .type = cJSON_String, .valuestring = (char[]) { "1x" } },
					     &got, &e),
			 -HM_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_milli),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
