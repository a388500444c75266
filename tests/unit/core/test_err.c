#include "core/err.h"

#include <errno.h>
#include <string.h>

#include "harness/unit.h"

static void set_keeps_code_and_text(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(hm_err_set(&e, HM_EINVAL, "line %d: \"%s\"", 7, "ten"), -HM_EINVAL);
	assert_int_equal(e.code, HM_EINVAL);
	assert_string_equal(e.msg, "line 7: \"ten\"");
	assert_int_equal(hm_err_set(NULL, HM_ELIMIT, "nobody listens"), -HM_ELIMIT);
}

static void errno_becomes_code_and_text(void **state)
{
	static const struct {
		int errnum, code;
		const char *text;
	} cases[] = {
		{ ENOENT, HM_ENOTFOUND, "open x: No such file or directory" },
		{ ENOMEM, HM_ENOMEM, "open x: Cannot allocate memory" },
		{ EEXIST, HM_EEXIST, "open x: File exists" },
		{ EACCES, HM_EPERM, "open x: Permission denied" },
		{ EPERM, HM_EPERM, "open x: Operation not permitted" },
		{ ENOSPC, HM_EIO, "open x: No space left on device" },
		{ 9999, HM_EIO, "open x: unknown errno" },
	};
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		assert_int_equal(hm_err_errno(&e, cases[i].errnum, "open %s", "x"), -cases[i].code);
		assert_int_equal(e.code, cases[i].code);
		assert_string_equal(e.msg, cases[i].text);
		assert_int_equal(hm_err_errno(NULL, cases[i].errnum, "x"), -cases[i].code);
	}
}

/* Every text that we give must be the C library's, so that people find it. */
static void errno_texts_are_the_usual_ones(void **state)
{
	int known = 0;

	(void)state;
	for (int n = 1; n < 134; n++) {
		if (strcmp(hm_errno_text(n), "unknown errno") == 0)
			continue;
		assert_string_equal(hm_errno_text(n), strerror(n));
		known++;
	}
	assert_in_range(known, 40, 133);
}

static void wrap_puts_the_layer_in_front(void **state)
{
	struct hm_err e;

	(void)state;
	hm_err_set(&e, HM_EPROTO, "line %d: \"ten\" is not a number", 7);
	assert_int_equal(hm_err_wrap(&e, "read config %s", "/etc/hami/config.yaml"), -HM_EPROTO);
	assert_string_equal(e.msg, "read config /etc/hami/config.yaml: line 7: \"ten\" is not a number");
	assert_int_equal(e.code, HM_EPROTO);
	assert_int_equal(hm_err_wrap(NULL, "x"), -HM_EINTERNAL);
}

static void what_does_not_fit_is_cut_at_the_end(void **state)
{
	char lang[2 * sizeof((struct hm_err *)NULL)->msg];
	struct hm_err e;

	(void)state;
	memset(lang, 'a', sizeof lang - 1);
	lang[sizeof lang - 1] = '\0';
	hm_err_set(&e, HM_EIO, "%s", lang);
	assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
	hm_err_wrap(&e, "outer");
	assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
	assert_memory_equal(e.msg, "outer: aaa", 10);
	hm_err_errno(&e, ENOENT, "%s", lang);
	assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
}

static void a_prefix_of_any_length_leaves_a_terminated_text(void **state)
{
	char prefix[700];
	struct hm_err e;

	(void)state;
	for (size_t n = 480; n < sizeof prefix; n++) {
		memset(prefix, 'p', n);
		prefix[n] = '\0';
		hm_err_set(&e, HM_EIO, "inner");
		hm_err_wrap(&e, "%s", prefix);
		assert_int_equal(strlen(e.msg), n + 7 < sizeof e.msg ? n + 7 : sizeof e.msg - 1);
		assert_non_null(strstr(e.msg, "p: "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_keeps_code_and_text),
		cmocka_unit_test(errno_becomes_code_and_text),
		cmocka_unit_test(errno_texts_are_the_usual_ones),
		cmocka_unit_test(wrap_puts_the_layer_in_front),
		cmocka_unit_test(what_does_not_fit_is_cut_at_the_end),
		cmocka_unit_test(a_prefix_of_any_length_leaves_a_terminated_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
