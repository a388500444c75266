#include "hami/mig_text.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/hami/golden.h"

#define R(container, device) "{\"containerIndex\":" #container ",\"deviceIndex\":" #device ",\"gpuUUID\":\"GPU-a\","
#define PLACED "\"profile\":\"1g.5gb\",\"placement\":{\"start\":6,\"size\":1}"
#define MADE ",\"migUUID\":\"MIG-1\",\"gpuInstanceID\":13,\"computeInstanceID\":0"

static void same_again(const char *text)
{
	hm_auto_mig_allocations m = { 0 };
	hm_auto_str again = { 0 };
	struct hm_err e;

	if (text[0] != '[') { /* broken on purpose */
		assert_true(mig_text_parse(text, &m, &e) < 0);
		return;
	}
	if (mig_text_parse(text, &m, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	mig_text_write(&m, &again);
	assert_string_equal(str_text(&again), text);
}

static void test_golden(void **state)
{
	(void)state;
	assert_true(golden_each("mig", same_again) >= 30);
}

static void test_read(void **state)
{
	hm_auto_mig_allocations m = { 0 };
	const struct mig_record *r;
	struct hm_err e;

	(void)state;
	assert_int_equal(mig_text_parse("[" R(1, 2) PLACED MADE "}," R(0, 0) PLACED ",\"migUUID\":null}]", &m, &e), 0);
	r = mig_allocations_find(&m, 1, 2);
	assert_non_null(r);
	assert_string_equal(r->gpu_uuid, "GPU-a");
	assert_string_equal(r->profile, "1g.5gb");
	assert_int_equal(r->start, 6);
	assert_int_equal(r->size, 1);
	assert_true(r->made);
	assert_string_equal(r->mig_uuid, "MIG-1");
	assert_int_equal(r->gpu_instance, 13);
	assert_int_equal(r->compute_instance, 0);
	r = mig_allocations_find(&m, 0, 0);
	assert_non_null(r);
	assert_false(r->made);
	assert_null(mig_allocations_find(&m, 2, 1));
}

static void test_empty(void **state)
{
	static const char *const empty[] = { NULL, "", "[]" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(empty); i++) {
		hm_auto_mig_allocations m = { 0 };
		hm_auto_str text = { 0 };
		hm_auto_str canonical = { 0 };
		struct hm_err e;

		assert_int_equal(mig_text_parse(empty[i], &m, &e), 0);
		assert_int_equal(m.count, 0);
		mig_text_write(&m, &text);
		assert_string_equal(str_text(&text), "[]");
		mig_text_write_canonical(&m, &canonical);
		assert_string_equal(str_text(&canonical), "");
	}
}

/* An instance is made, others' members stay, and what was decided reads the same. */
static void test_made_and_kept(void **state)
{
	hm_auto_mig_allocations m = { 0 };
	hm_auto_str text = { 0 };
	hm_auto_str canonical = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(mig_text_parse("[" R(1, 0) PLACED ",\"owner\":{\"a\":[1,2.5,\"<x>\"]},\"MigUUID\":7}," R(0, 1)
						PLACED "}," R(0, 0) PLACED MADE "}]",
					&m, &e),
			 0);
	m.records[0].made = true;
	memcpy(m.records[0].mig_uuid, "MIG-<2>", sizeof "MIG-<2>");
	m.records[0].gpu_instance = 4294967295;
	mig_text_write(&m, &text);
	assert_string_equal(str_text(&text), "[" R(1, 0) PLACED
			    ",\"migUUID\":\"MIG-\\u003c2\\u003e\",\"gpuInstanceID\":4294967295,"
			    "\"computeInstanceID\":0,\"owner\":{\"a\":[1,2.5,\"<x>\"]},\"MigUUID\":7}," R(0, 1) PLACED
			    "}," R(0, 0) PLACED MADE "}]");
	mig_text_write_canonical(&m, &canonical);
	assert_string_equal(str_text(&canonical), "[" R(0, 0) PLACED "}," R(0, 1) PLACED "}," R(1, 0) PLACED "}]");
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} bad[] = {
		{ "{", HM_EPROTO, "not JSON" },
		{ "zzz", HM_EPROTO, "not JSON" },
		{ "\"zzz\"", HM_EINVAL, "" },
		{ "[7]", HM_EINVAL, "[0]" },
		{ "[" R(-1, 0) PLACED "}]", HM_EINVAL, "[0].containerIndex" },
		{ "[" R(0, 0.5) PLACED "}]", HM_EINVAL, "[0].deviceIndex" },
		{ "[" R(0, 4294967296) PLACED "}]", HM_EINVAL, "[0].deviceIndex" },
		{ "[{" PLACED "}]", HM_EINVAL, "[0].gpuUUID: is missing" },
		{ "[{\"gpuUUID\":\"\"," PLACED "}]", HM_EINVAL, "[0].gpuUUID: is empty" },
		{ "[" R(0, 0) "\"placement\":{\"size\":1}}]", HM_EINVAL, "[0].profile: is missing" },
		{ "[" R(0, 0) "\"profile\":\"1g.5gb\"}]", HM_EINVAL, "[0].placement: is missing" },
		{ "[" R(0, 0) "\"profile\":\"1g.5gb\",\"placement\":{\"start\":1,\"size\":0}}]", HM_EINVAL, ".size" },
		{ "[" R(0, 0) "\"profile\":\"1g.5gb\",\"placement\":{\"start\":1}}]", HM_EINVAL, ".size" },
		{ "[" R(0, 0) PLACED ",\"migUUID\":\"MIG-1\"}]", HM_EINVAL, "[0].gpuInstanceID: is missing" },
		{ "[" R(0, 0) PLACED ",\"gpuInstanceID\":1,\"computeInstanceID\":1}]", HM_EINVAL,
		  "[0].migUUID: is missing" },
		{ "[" R(0, 0) PLACED "}," R(0, 1) PLACED "}," R(0, 0) PLACED "}]", HM_EINVAL,
		  "[2]: container 0, device 0 stands twice" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct mig_allocations m;
		struct hm_err e = { 0 };

		assert_int_equal(mig_text_parse(bad[i].text, &m, &e), -bad[i].code);
		if (strstr(e.msg, bad[i].says) == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
		assert_null(m.records);
	}
}

static int read_once(void *arg)
{
	hm_auto_mig_allocations m = { 0 };
	struct hm_err e;

	return mig_text_parse(arg, &m, &e);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	sweep_check("mig_text_parse", read_once, "[" R(0, 0) PLACED MADE "}," R(0, 1) PLACED ",\"x\":1}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),  cmocka_unit_test(test_read),
		cmocka_unit_test(test_empty),   cmocka_unit_test(test_made_and_kept),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
