#include "hami/devices_text.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/hami/golden.h"

/* What HAMi's own decoder makes of each text: containers, devices in each (one digit), and what its encoder writes
 * then. From the description of the format and the examples that go with it. */
static const struct {
	const char *text;
	const char *counts;
	const char *written;
} cases[] = {
	{ "", "0", ";" },
	{ ";", "00", ";;" },
	{ "A,NVIDIA,3000,30:;", "10", "A,NVIDIA,3000,30:;;" },
	{ "A,NVIDIA,3000,0:;A,NVIDIA,5000,0:;", "110", "A,NVIDIA,3000,0:;A,NVIDIA,5000,0:;;" },
	{ "A,NVIDIA,8000,0:B,NVIDIA,8000,0:;", "20", "A,NVIDIA,8000,0:B,NVIDIA,8000,0:;;" },
	{ ";A,NVIDIA,3000,30:;B,NVIDIA,5000,0:C,NVIDIA,5000,0:;", "0120",
	  ";A,NVIDIA,3000,30:;B,NVIDIA,5000,0:C,NVIDIA,5000,0:;;" },
	{ "A,NVIDIA,3000,30", "1", "A,NVIDIA,3000,30:;" },
	{ ";A,NVIDIA,1,2:;", "010", ";A,NVIDIA,1,2:;;" },
	/* More fields than four, and parts that are no device. */
	{ "A,NVIDIA,1,2,x:;", "10", "A,NVIDIA,1,2:;;" },
	{ "x:A,NVIDIA,1,2::y;z", "10", "A,NVIDIA,1,2:;;" },
	/* Believed as they stand. */
	{ ",,0,0:;", "10", ",,0,0:;;" },
	{ "A,MLU,1,2:;", "10", "A,MLU,1,2:;;" },
	{ "A,NVIDIA,2147483647,-2147483648:", "1", "A,NVIDIA,2147483647,-2147483648:;" },
	{ "A,NVIDIA,+07,-0:", "1", "A,NVIDIA,7,0:;" },
};

static void test_read_and_write(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_pod_devices d = { 0 };
		hm_auto_str counts = { 0 };
		hm_auto_str text = { 0 };
		struct hm_err e;

		assert_int_equal(devices_text_parse(cases[i].text, &d, &e), 0);
		for (size_t k = 0; k < d.entry_count; k++)
			str_addf(&counts, "%zu", d.entries[k].count);
		assert_string_equal(str_text(&counts), cases[i].counts);
		devices_text_write(&d, &text);
		assert_string_equal(str_text(&text), cases[i].written);
	}
}

static void test_values(void **state)
{
	hm_auto_pod_devices d = { 0 };
	struct hm_err e;
	const struct device_share *s;

	(void)state;
	assert_int_equal(devices_text_parse(";GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,-1,100:;", &d, &e), 0);
	assert_int_equal(d.entries[1].count, 2);
	s = &d.shares[d.entries[1].first];
	assert_string_equal(s[0].uuid, "GPU-1");
	assert_string_equal(s[0].type, "NVIDIA");
	assert_int_equal(s[0].memory_mib, 3000);
	assert_int_equal(s[0].cores, 30);
	assert_string_equal(s[1].uuid, "GPU-2");
	assert_int_equal(s[1].memory_mib, -1);
	assert_int_equal(s[1].cores, 100);
}

#define WORD_63 "123456789012345678901234567890123456789012345678901234567890123"

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} bad[] = {
		{ NULL, HM_ENOTFOUND, "device request not found" },
		{ "A,NVIDIA,1:", HM_EPROTO, "missing fields, do not use nodeName in task spec" },
		{ "A,NVIDIA,1,2:;,:", HM_EPROTO, "\",\": pod annotation format error" },
		{ "A,NVIDIA,3000000000,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,2147483648,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,1,-2147483649:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,99999999999999999999999,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,-,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,+-1,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA, 1,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,1_000,0:", HM_EPROTO, "no 32-bit number" },
		{ "A,NVIDIA,0x10,0:", HM_EPROTO, "no 32-bit number" },
		{ WORD_63 "4,NVIDIA,1,0:", HM_ELIMIT, "64 bytes or more" },
		{ "A," WORD_63 "4,1,0:", HM_ELIMIT, "64 bytes or more" },
	};
	hm_auto_pod_devices longest = { 0 };
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct pod_devices d;

		assert_int_equal(devices_text_parse(bad[i].text, &d, &e), -bad[i].code);
		assert_non_null(strstr(e.msg, bad[i].says));
		assert_null(d.shares);
	}
	assert_int_equal(devices_text_parse(WORD_63 "," WORD_63 ",1,0:", &longest, &e), 0);
}

static void test_too_long(void **state)
{
	static char text[DEVICES_TEXT_MAX_BYTES + 2];
	hm_auto_pod_devices d = { 0 };
	struct pod_devices none;
	struct hm_err e;

	(void)state;
	memset(text, ';', DEVICES_TEXT_MAX_BYTES);
	assert_int_equal(devices_text_parse(text, &d, &e), 0);
	assert_int_equal(d.entry_count, DEVICES_TEXT_MAX_BYTES + 1);
	text[DEVICES_TEXT_MAX_BYTES] = ';';
	assert_int_equal(devices_text_parse(text, &none, &e), -HM_ELIMIT);
}

static size_t compared;

/* What HAMi's encoder wrote comes out with one ";" more. Texts that were made by hand are known by what HAMi never
 * writes: a last entry without its ";", a fifth field, too few of them. */
static void one_longer(const char *text)
{
	hm_auto_pod_devices d = { 0 };
	hm_auto_str expected = { 0 };
	hm_auto_str again = { 0 };
	struct hm_err e;
	size_t n = strlen(text), commas = 0, colons = 0;

	for (size_t i = 0; i < n; i++) {
		commas += text[i] == ',';
		colons += text[i] == ':';
	}
	if (n == 0 || text[n - 1] != ';' || commas != 3 * colons || devices_text_parse(text, &d, &e) < 0)
		return;
	devices_text_write(&d, &again);
	str_addf(&expected, "%s;", text);
	assert_string_equal(str_text(&again), str_text(&expected));
	compared++;
}

static void test_golden(void **state)
{
	(void)state;
	assert_true(golden_each("devices", one_longer) >= 200);
	assert_true(compared >= 190);
}

/* HAMi's plugin takes one entry at each Allocate, reading and writing the annotation anew. */
static void erase_next(const char *text, const char *expected)
{
	hm_auto_pod_devices d = { 0 };
	hm_auto_str out = { 0 };
	struct hm_err e;

	assert_int_equal(devices_text_parse(text, &d, &e), 0);
	pod_devices_erase(&d, pod_devices_find(&d, 0));
	devices_text_write(&d, &out);
	assert_string_equal(str_text(&out), expected);
}

static void test_erase(void **state)
{
	(void)state;
	erase_next("A,NVIDIA,3000,30:;", ";;");
	erase_next(";A,NVIDIA,3000,30:;B,NVIDIA,5000,0:C,NVIDIA,5000,0:;", ";;B,NVIDIA,5000,0:C,NVIDIA,5000,0:;;");
	erase_next(";;B,NVIDIA,5000,0:C,NVIDIA,5000,0:;;", ";;;;;");
	erase_next(";;", ";;;"); /* nothing to take: SIZE_MAX is ignored */
}

static void test_find(void **state)
{
	hm_auto_pod_devices d = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(devices_text_parse(";A,NVIDIA,1,0:;;B,NVIDIA,1,0:C,NVIDIA,1,0:;", &d, &e), 0);
	assert_int_equal(pod_devices_filled(&d), 2);
	assert_true(pod_devices_find(&d, 0) == 1);
	assert_true(pod_devices_find(&d, 1) == 3);
	assert_true(pod_devices_find(&d, 2) == SIZE_MAX);
	pod_devices_erase(&d, 1);
	assert_int_equal(pod_devices_filled(&d), 1);
	assert_true(pod_devices_find(&d, 0) == 3);
}

static int read_once(void *arg)
{
	hm_auto_pod_devices d = { 0 };
	struct hm_err e;

	return devices_text_parse(arg, &d, &e);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	sweep_check("devices_text_parse", read_once, ";A,NVIDIA,1,0:B,NVIDIA,1,0:;C,NVIDIA,1,0:;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_and_write), cmocka_unit_test(test_values), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_long),       cmocka_unit_test(test_erase),  cmocka_unit_test(test_find),
		cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_golden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
