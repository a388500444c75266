#include "model/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"

struct seen {
	char one[16], many[64];
};

static int read_one(struct piece v, void *into, struct hm_err *e)
{
	if (!piece_copy(v, ((struct seen *)into)->one, sizeof((struct seen *)into)->one))
		return hm_err_set(e, HM_EPROTO, "too long");
	return 0;
}

static int read_many(struct piece v, void *into, struct hm_err *e)
{
	struct seen *s = into;
	size_t at = strlen(s->many);

	(void)e;
	snprintf(s->many + at, sizeof s->many - at, "%.*s;", (int)v.n, v.p);
	return 0;
}

static const struct record_key keys[] = { { "one", false, read_one }, { "many", true, read_many } };
static const struct record_format format = { "test", 1, keys, HM_COUNT(keys) };

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says; /* of the error, or "one|many" */
	} rows[] = {
		{ "test 1\none=1\nend\n", 0, "1|" },
		{ "test 1\none=1\nend", 0, "1|" },
		{ "test 1\nmany=a\none=\nmany=b=c\nend\n", 0, "|a;b=c;" },
		{ "", -HM_EPROTO, "line 1: not \"test 1\"" },
		{ "test\nend\n", -HM_EPROTO, "line 1: not \"test 1\"" },
		{ "test 0\nend\n", -HM_EPROTO, "line 1: not" },
		{ "test 1x\nend\n", -HM_EPROTO, "line 1: not" },
		{ "test 2\nend\n", -HM_EUNSUPPORTED, "test version 2" },
		{ "test 1\n", -HM_EPROTO, "line 2: \"end\" is missing" },
		{ "test 1\none=1\n", -HM_EPROTO, "line 3: \"end\" is missing" },
		{ "test 1\none=1\nen", -HM_EPROTO, "line 3: neither" },
		{ "test 1\nend\n", -HM_EPROTO, "one is missing" },
		{ "test 1\none=1\none=2\nend\n", -HM_EPROTO, "line 3: one: stands twice" },
		{ "test 1\ntwo=1\nend\n", -HM_EPROTO, "line 2: unknown key \"two\"" },
		{ "test 1\none=12345678901234567890\nend\n", -HM_EPROTO, "line 2: one: too long" },
		{ "test 1\none=1\nend\n\n", -HM_EPROTO, "text behind \"end\"" },
		{ "test 1\n\none=1\nend\n", -HM_EPROTO, "line 2: neither" },
		{ "test 1\n=1\nend\n", -HM_EPROTO, "line 2: unknown key \"\"" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct seen seen = { 0 };
		struct hm_err e = { 0 };
		char both[128];
		int r = record_parse(&format, rows[i].text, strlen(rows[i].text), &seen, &e);

		if (r != rows[i].code)
			fail_msg("row %zu: %d, not %d (%s)", i, r, rows[i].code, e.msg);
		snprintf(both, sizeof both, "%s|%s", seen.one, seen.many);
		if (r == 0)
			assert_string_equal(both, rows[i].says);
		else if (strstr(e.msg, rows[i].says) == NULL)
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, e.msg, rows[i].says);
	}
}

static void test_unescape(void **state)
{
	static const struct {
		const char *in, *out; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "a text", "a text" },
		{ "\\n\\t\\\\\\\"\\x7f\\xff", "\n\t\\\"\x7f\xff" },
		{ "1234567", "1234567" },
		{ "12345678", NULL }, /* 8 bytes of room, the NUL too */
		{ "\\x41", "A" },
		{ "\\", NULL },
		{ "\\x", NULL },
		{ "\\x4", NULL },
		{ "\\x4g", NULL },
		{ "\\xA0", NULL }, /* the writer's digits are small */
		{ "\\x00", NULL },
		{ "\\q", NULL },
		{ "a\"b", NULL },
		{ "a\tb", NULL },
		{ "\xc3\xa4", NULL },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char out[8];
		bool ok = record_unescape((struct piece) { rows[i].in, strlen(rows[i].in) }, out, sizeof out);

		if (ok != (rows[i].out != NULL))
			fail_msg("\"%s\": %d", rows[i].in, ok);
		assert_string_equal(out, ok ? rows[i].out : "");
	}
}

static void test_word(void **state)
{
	static const struct {
		const char *in;
		bool ok;
	} rows[] = {
		{ "GPU-1", true }, { "1234567", true }, { "12345678", false }, { "", false },     { "a b", false },
		{ "a\n", false },  { "a\\n", false },   { "\"", false },       { "\x7f", false }, { "\xc3", false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char out[8];

		if (record_word((struct piece) { rows[i].in, strlen(rows[i].in) }, out, sizeof out) != rows[i].ok)
			fail_msg("\"%s\"", rows[i].in);
		assert_string_equal(out, rows[i].ok ? rows[i].in : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_unescape),
		cmocka_unit_test(test_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
