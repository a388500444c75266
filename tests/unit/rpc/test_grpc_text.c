#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "rpc/grpc_text.h"
#include "rpc/limits.h"

static const struct {
	const char *text, *wire;
} messages[] = {
	{ "", "" },
	{ "plain text, ~ and !", "plain text, ~ and !" },
	{ "100%", "100%25" },
	{ "a\nb\tc\x7f", "a%0Ab%09c%7F" },
	{ "K\xC3\xB6ln \xE2\x82\xAC", "K%C3%B6ln %E2%82%AC" },
	{ "\x01\xFF", "%01%FF" },
};

static void test_message_both_ways(void **state)
{
	char back[64];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(messages); i++) {
		hm_auto_str wire = { 0 };

		grpc_message_encode(&wire, messages[i].text);
		assert_string_equal(str_text(&wire), messages[i].wire);
		grpc_message_decode((struct piece) { messages[i].wire, strlen(messages[i].wire) }, back, sizeof back);
		assert_string_equal(back, messages[i].text);
	}
}

static void test_decode_is_lenient(void **state)
{
	static const struct {
		const char *wire, *text;
	} cases[] = {
		{ "%", "%" },     { "%4", "%4" },   { "%zz", "%zz" }, { "%4g", "%4g" }, { "%e2%82%ac", "\xE2\x82\xAC" },
		{ "%25%", "%%" }, { "%%41", "%A" }, { "%00", "?" },   { "a%", "a%" },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		grpc_message_decode((struct piece) { cases[i].wire, strlen(cases[i].wire) }, text, sizeof text);
		assert_string_equal(text, cases[i].text);
	}
	grpc_message_decode((struct piece) { "abcdef", 6 }, text, 4);
	assert_string_equal(text, "abc");
	grpc_message_decode((struct piece) { "abcdef", 6 }, text, 1);
	assert_string_equal(text, "");
}

/* 1023 bytes and a character of two: it would be cut, so it goes. */
static void test_encode_cuts_between_characters(void **state)
{
	char text[RPC_MAX_MESSAGE_TEXT_BYTES + 64];
	hm_auto_str wire = { 0 };

	(void)state;
	memset(text, 'a', sizeof text);
	memcpy(text + RPC_MAX_MESSAGE_TEXT_BYTES - 1, "\xC3\xB6", 2);
	text[sizeof text - 1] = '\0';
	grpc_message_encode(&wire, text);
	assert_int_equal(wire.n, RPC_MAX_MESSAGE_TEXT_BYTES - 1);
	str_clear(&wire);
	memcpy(text + RPC_MAX_MESSAGE_TEXT_BYTES - 2, "\xC3\xB6", 2);
	text[RPC_MAX_MESSAGE_TEXT_BYTES] = 'a';
	grpc_message_encode(&wire, text);
	assert_int_equal(wire.n, RPC_MAX_MESSAGE_TEXT_BYTES + 4);
	str_clear(&wire);
	memset(text, 0x80, sizeof text - 1); /* no UTF-8 at all: cut anywhere */
	grpc_message_encode(&wire, text);
	assert_int_equal(wire.n, 3 * RPC_MAX_MESSAGE_TEXT_BYTES);
}

static void test_timeout_parse(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t ms;
	} cases[] = {
		{ "250m", true, 250 },      { "1S", true, 1000 },       { "2M", true, 120000 },
		{ "3H", true, 10800000 },   { "0m", true, 0 },          { "1u", true, 1 },
		{ "1000u", true, 1 },       { "1001u", true, 2 },       { "1n", true, 1 },
		{ "99999999n", true, 100 }, { "0n", true, 0 },          { "99999999H", true, 99999999ULL * 3600000 },
		{ "", false, 0 },           { "m", false, 0 },          { "100", false, 0 },
		{ "100000000m", false, 0 }, { "000000001m", false, 0 }, { "-1m", false, 0 },
		{ "1.5S", false, 0 },       { " 1S", false, 0 },        { "1s", false, 0 },
		{ "1S ", false, 0 },        { "0x1S", false, 0 },       { "1mm", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		uint64_t ms = 77;
		bool good = grpc_timeout_parse((struct piece) { cases[i].text, strlen(cases[i].text) }, &ms);

		if (good != cases[i].good || (good && ms != cases[i].ms))
			fail_msg("\"%s\": %d %llu", cases[i].text, good, (unsigned long long)ms);
	}
}

static void test_timeout_format(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "0m" },
		{ 250, "250m" },
		{ 99999999, "99999999m" },
		{ 100000000, "100000S" },
		{ 100000001, "100001S" },
		{ 99999999ULL * 1000, "99999999S" },
		{ 99999999ULL * 1000 + 1, "1666667M" },
		{ UINT64_MAX, "99999999H" },
	};
	char text[GRPC_TIMEOUT_TEXT];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		grpc_timeout_format(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static int scenario_encode(void *arg)
{
	hm_auto_str wire = { 0 };

	(void)arg;
	for (int i = 0; i < 10; i++)
		grpc_message_encode(&wire, "a text that has to grow: \xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC");
	return str_failed(&wire) ? -1 : 0;
}

static void test_memory(void **state)
{
	(void)state;
	sweep_check("grpc_message_encode", scenario_encode, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_both_ways),
		cmocka_unit_test(test_decode_is_lenient),
		cmocka_unit_test(test_encode_cuts_between_characters),
		cmocka_unit_test(test_timeout_parse),
		cmocka_unit_test(test_timeout_format),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
