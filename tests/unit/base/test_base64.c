#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"

/* RFC 4648, section 10, and what it leaves to the decoder. */
static void decodes(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {
		{ "", "" },
		{ "Zg==", "f" },
		{ "Zm8=", "fo" },
		{ "Zm9v", "foo" },
		{ "Zm9vYg==", "foob" },
		{ "Zm9vYmE=", "fooba" },
		{ "Zm9vYmFy", "foobar" },
		{ "+/+/", "\xfb\xff\xbf" },
		{ "Zg=", NULL },
		{ "Zg", NULL },
		{ "Z===", NULL },
		{ "====", NULL },
		{ "Zg==Zg==", NULL },
		{ "Zm=v", NULL },
		{ "Zm9v\n", NULL },
		{ "Zm9-", NULL },
		{ "Zh==", NULL }, /* unused bits set */
		{ "Zm9=", NULL },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint8_t out[16];
		size_t n = 99;
		bool ok = base64_decode(cases[i].text, strlen(cases[i].text), out, &n);

		if (ok != (cases[i].want != NULL))
			fail_msg("\"%s\" was %s", cases[i].text, ok ? "taken" : "refused");
		if (!ok)
			continue;
		assert_int_equal(n, strlen(cases[i].want));
		assert_memory_equal(out, cases[i].want, n);
	}
}

/* What stands behind the text is none of it. */
static void stops_at_its_end(void **state)
{
	uint8_t out[16];
	size_t n;

	(void)state;
	for (size_t cut = 1; cut < 8; cut++)
		assert_int_equal(base64_decode("Zm9vYmFy", cut, out, &n), cut == 4);
}

/* RFC 4648, sections 5 and 10, without padding. */
static void url_alphabet(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {
		{ "", "" },
		{ "Zg", "f" },
		{ "Zm8", "fo" },
		{ "Zm9v", "foo" },
		{ "Zm9vYg", "foob" },
		{ "Zm9vYmE", "fooba" },
		{ "-_-_", "\xfb\xff\xbf" },
		{ "Z", NULL },
		{ "Zg==", NULL },
		{ "+_-_", NULL },
		{ "-/-_", NULL },
		{ "Zh", NULL },
		{ "Zm9", NULL },
		{ "Zm9vYmFyZm8", NULL }, /* longer than the room */
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str again = { 0 };
		uint8_t out[6];
		size_t n = 99;
		bool ok = base64url_decode(cases[i].text, strlen(cases[i].text), out, sizeof out, &n);

		if (ok != (cases[i].want != NULL))
			fail_msg("\"%s\" was %s", cases[i].text, ok ? "taken" : "refused");
		if (!ok)
			continue;
		assert_int_equal(n, strlen(cases[i].want));
		assert_memory_equal(out, cases[i].want, n);
		base64url_add(&again, out, n);
		assert_string_equal(str_text(&again), cases[i].text);
	}
}

/* RFC 4648, section 10, and the two last letters. */
static void writes(void **state)
{
	static const struct {
		const char *bytes, *want;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xfb\xff\xfe", "+//+" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str out = { 0 };

		base64_add(&out, (const uint8_t *)cases[i].bytes, strlen(cases[i].bytes));
		assert_string_equal(str_text(&out), cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes),
		cmocka_unit_test(stops_at_its_end),
		cmocka_unit_test(url_alphabet),
		cmocka_unit_test(writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
