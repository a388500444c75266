#include "hami/register_text.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/hami/golden.h"

/* HAMi writes what it reads in one way only: its texts come out as they went in. What it did not write itself (texts
 * of older plugins, broken ones) is refused. */
static void same_again(const char *text)
{
	hm_auto_node_register reg = { 0 };
	hm_auto_str again = { 0 };
	struct hm_err e;

	if (strncmp(text, "[{\"id\"", 6) != 0 && strcmp(text, "[]") != 0) {
		assert_int_equal(register_text_parse(text, &reg, &e), -HM_EPROTO);
		return;
	}
	if (register_text_parse(text, &reg, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	register_text_write(&reg, &again);
	assert_string_equal(str_text(&again), text);
}

static void test_golden(void **state)
{
	(void)state;
	assert_true(golden_each("register", same_again) >= 40);
}

static void test_written(void **state)
{
	static const struct {
		struct register_device device;
		const char *text;
	} cases[] = {
		{ { .id = "GPU-a",
		    .count = 10,
		    .memory_mib = 81920,
		    .cores = 100,
		    .type = "NVIDIA A100-SXM4-80GB",
		    .mode = "hami-core",
		    .healthy = true },
		  "[{\"id\":\"GPU-a\",\"count\":10,\"devmem\":81920,\"devcore\":100,\"type\":\"NVIDIA "
		  "A100-SXM4-80GB\",\"mode\":\"hami-core\",\"health\":true}]" },
		{ { .id = "GPU-b",
		    .index = 1,
		    .count = 10,
		    .memory_mib = 81920,
		    .cores = 100,
		    .type = "NVIDIA A30",
		    .numa = 1,
		    .mode = "hami-core",
		    .healthy = true },
		  "[{\"id\":\"GPU-b\",\"index\":1,\"count\":10,\"devmem\":81920,\"devcore\":100,\"type\":\"NVIDIA "
		  "A30\",\"numa\":1,\"mode\":\"hami-core\",\"health\":true}]" },
		/* Index 0, NUMA node 0, sick: nothing of it is said. */
		{ { .id = "GPU-c", .count = 1, .memory_mib = 1, .cores = 1, .type = "t" },
		  "[{\"id\":\"GPU-c\",\"count\":1,\"devmem\":1,\"devcore\":1,\"type\":\"t\"}]" },
		{ { .id = "GPU-d", .healthy = true, .late_binding = true },
		  "[{\"id\":\"GPU-d\",\"health\":true,\"custominfo\":{\"binding\":\"late\"}}]" },
		{ { .type = "<&>\"\\\b\f\n\r\t\x01\x7f\xe2\x80\xa8\xe2\x80\xa9\xc3\xa9\xff" },
		  "[{\"type\":\"\\u003c\\u0026\\u003e\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\\u2028\\u2029\xc3\xa9\\ufffd"
		  "\"}]" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_node_register reg = { 0 };
		hm_auto_str text = { 0 };
		struct hm_err e;

		assert_int_equal(register_add_device(&reg, &cases[i].device, &e), 0);
		register_text_write(&reg, &text);
		assert_string_equal(str_text(&text), cases[i].text);
	}
}

static void test_profiles(void **state)
{
	static const struct register_placement at[] = { { 0, 4 }, { 4, 4 } };
	hm_auto_node_register reg = { 0 };
	hm_auto_node_register again = { 0 };
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(register_add_device(&reg, &(struct register_device) { .id = "a", .mode = "mig" }, &e), 0);
	assert_int_equal(register_add_profile(&reg, &(struct register_profile) { "3g.20gb", 19968, 43, 3 }, at, 2, &e),
			 0);
	assert_int_equal(register_add_profile(&reg, &(struct register_profile) { "7g.40gb", 0, 0, 0 }, NULL, 0, &e), 0);
	assert_int_equal(register_add_device(&reg, &(struct register_device) { .id = "b" }, &e), 0);
	assert_int_equal(register_add_profile(&reg, &(struct register_profile) { "1g.5gb", 1, 2, 3 }, at + 1, 1, &e),
			 0);
	register_text_write(&reg, &text);
	assert_string_equal(
		str_text(&text),
		"[{\"id\":\"a\",\"mode\":\"mig\",\"migProfiles\":[{\"name\":\"3g.20gb\",\"memoryMB\":19968,"
		"\"core\":43,\"sliceCount\":3,\"placements\":[{\"start\":0,\"size\":4},{\"start\":4,\"size\":"
		"4}]},{\"name\":\"7g.40gb\",\"memoryMB\":0,\"core\":0,\"sliceCount\":0,\"placements\":null}]},"
		"{\"id\":\"b\",\"migProfiles\":[{\"name\":\"1g.5gb\",\"memoryMB\":1,\"core\":2,"
		"\"sliceCount\":3,\"placements\":[{\"start\":4,\"size\":4}]}]}]");
	assert_int_equal(register_text_parse(str_text(&text), &again, &e), 0);
	assert_int_equal(again.devices[1].profile_count, 1);
	assert_string_equal(again.profiles[again.devices[1].first_profile].name, "1g.5gb");
}

static void test_read(void **state)
{
	hm_auto_node_register reg = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(
		register_text_parse(
			" [ {\"devicevendor\":\"NVIDIA\",\"id\":\"GPU-a\",\"index\":3,\"count\":4,\"devmem\":5,"
			"\"devcore\":6,\"type\":\"T\",\"numa\":7,\"mode\":null,\"health\":true,\"new\":[{}],"
			"\"custominfo\":{\"x\":1,\"binding\":\"late\"}},{\"custominfo\":{\"binding\":7}},"
			"{\"custominfo\":\"late\"},{\"health\":false}]\n",
			&reg, &e),
		0);
	assert_int_equal(reg.device_count, 4);
	assert_string_equal(reg.devices[0].id, "GPU-a");
	assert_int_equal(reg.devices[0].index, 3);
	assert_int_equal(reg.devices[0].count, 4);
	assert_int_equal(reg.devices[0].memory_mib, 5);
	assert_int_equal(reg.devices[0].cores, 6);
	assert_string_equal(reg.devices[0].type, "T");
	assert_int_equal(reg.devices[0].numa, 7);
	assert_string_equal(reg.devices[0].mode, "");
	assert_true(reg.devices[0].healthy && reg.devices[0].late_binding);
	for (size_t i = 1; i < 4; i++)
		assert_false(reg.devices[i].healthy || reg.devices[i].late_binding);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} bad[] = {
		{ "", HM_EPROTO, "empty" },
		{ "[{", HM_EPROTO, "not JSON" },
		{ "[] x", HM_EPROTO, "behind the JSON value" },
		{ "GPU-a,10,16376,100,NVIDIA-NVIDIA RTX A4000,0,true,0,hami-core:", HM_EPROTO, "before v2.8" },
		{ "{}", HM_EINVAL, "" },
		{ "[1]", HM_EINVAL, "[0]" },
		{ "[{\"id\":7}]", HM_EINVAL, "[0].id" },
		{ "[{},{\"devmem\":\"7\"}]", HM_EINVAL, "[1].devmem" },
		{ "[{\"devmem\":2147483648}]", HM_EINVAL, "[0].devmem" },
		{ "[{\"index\":-1}]", HM_EINVAL, "[0].index" },
		{ "[{\"health\":\"true\"}]", HM_EINVAL, "[0].health" },
		{ "[{\"migProfiles\":{}}]", HM_EINVAL, "migProfiles" },
		{ "[{\"migProfiles\":[{\"placements\":[{\"start\":1.5}]}]}]", HM_EINVAL, "placements[0].start" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct node_register reg;
		struct hm_err e = { 0 };

		assert_int_equal(register_text_parse(bad[i].text, &reg, &e), -bad[i].code);
		if (strstr(e.msg, bad[i].says) == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
		assert_null(reg.devices);
	}
}

static void test_too_many(void **state)
{
	hm_auto_str text = { 0 };
	struct node_register reg;
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i <= REGISTER_MAX_DEVICES; i++)
		str_add(&text, i == 0 ? "[{}" : ",{}");
	str_addc(&text, ']');
	assert_int_equal(register_text_parse(str_text(&text), &reg, &e), -HM_ELIMIT);
	assert_string_equal(e.msg, "devices: more than 1024");
	while (text.n <= REGISTER_TEXT_MAX_BYTES)
		str_addc(&text, ' ');
	assert_int_equal(register_text_parse(str_text(&text), &reg, &e), -HM_ELIMIT);
}

static void test_type(void **state)
{
	static const char *const cases[][2] = {
		{ "NVIDIA A30", "NVIDIA A30" },
		{ "Tesla P4", "NVIDIA-Tesla P4" },
		{ "nvidia lower", "NVIDIA-nvidia lower" },
		{ "NVIDIA", "NVIDIA" },
		{ "", "NVIDIA-" },
	};
	char out[REGISTER_TYPE_BYTES], name[REGISTER_TYPE_BYTES];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		assert_true(register_type(cases[i][0], out));
		assert_string_equal(out, cases[i][1]);
	}
	memset(name, 'x', sizeof name);
	name[REGISTER_TYPE_BYTES - 7] = '\0';
	assert_false(register_type(name, out));
	name[REGISTER_TYPE_BYTES - 8] = '\0';
	assert_true(register_type(name, out));
}

static int read_once(void *arg)
{
	hm_auto_node_register reg = { 0 };
	struct hm_err e;

	return register_text_parse(arg, &reg, &e);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	sweep_check("register_text_parse", read_once,
		    "[{\"id\":\"a\",\"migProfiles\":[{\"placements\":[{\"size\":1},{\"size\":2}]}]},{\"id\":\"b\"}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_written),       cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_read),   cmocka_unit_test(test_refused),       cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_type),   cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
