#include "hami/score_text.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/hami/golden.h"

enum { MOST = 16 };

static void same_again(const char *text)
{
	hm_auto_node_score s = { 0 };
	hm_auto_str again = { 0 };
	const char *uuids[MOST];
	int32_t scores[MOST * MOST] = { 0 };
	struct hm_err e;

	if (score_text_parse(text, &s, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_true(s.row_count <= MOST);
	for (size_t a = 0; a < s.row_count; a++) {
		uuids[a] = s.rows[a].uuid;
		assert_int_equal(s.rows[a].count, s.row_count - 1);
		for (size_t b = 0; b < s.row_count; b++)
			scores[a * s.row_count + b] = node_score_of(&s, s.rows[a].uuid, s.rows[b].uuid);
	}
	score_text_write(uuids, scores, s.row_count, &again);
	assert_string_equal(str_text(&again), text);
}

static void test_golden(void **state)
{
	(void)state;
	assert_true(golden_each("score", same_again) >= 5);
}

static void test_written(void **state)
{
	static const char *const uuids[] = { "GPU-c", "GPU-a", "GPU-b" };
	static const int32_t scores[] = { 9, 20, 0, 150, 9, 7, -1, 2147483647, 9 };
	hm_auto_str text = { 0 };

	(void)state;
	score_text_write(uuids, scores, 3, &text);
	assert_string_equal(str_text(&text), "[{\"uuid\":\"GPU-c\",\"score\":{\"GPU-a\":20,\"GPU-b\":0}},"
					     "{\"uuid\":\"GPU-a\",\"score\":{\"GPU-b\":7,\"GPU-c\":150}},"
					     "{\"uuid\":\"GPU-b\",\"score\":{\"GPU-a\":2147483647,\"GPU-c\":-1}}]");
	str_clear(&text);
	score_text_write(uuids, scores, 1, &text);
	assert_string_equal(str_text(&text), "[{\"uuid\":\"GPU-c\",\"score\":{}}]");
	str_clear(&text);
	score_text_write(uuids, scores, 0, &text);
	assert_string_equal(str_text(&text), "[]");
}

static void test_read(void **state)
{
	hm_auto_node_score s = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(
		score_text_parse("[{\"uuid\":\"a\",\"score\":{\"b\":5},\"x\":0},{\"uuid\":\"b\"},{\"uuid\":\"c\","
				 "\"score\":null}]",
				 &s, &e),
		0);
	assert_int_equal(s.row_count, 3);
	assert_int_equal(node_score_of(&s, "a", "b"), 5);
	assert_int_equal(node_score_of(&s, "b", "a"), 0);
	assert_int_equal(node_score_of(&s, "z", "a"), 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} bad[] = {
		{ "", HM_EPROTO, "empty" },
		{ "{}", HM_EINVAL, "" },
		{ "[{\"uuid\":1}]", HM_EINVAL, "[0].uuid" },
		{ "[{\"uuid\":\"a\",\"score\":[]}]", HM_EINVAL, "[0].score" },
		{ "[{\"uuid\":\"a\",\"score\":{\"b\":\"5\"}}]", HM_EINVAL, "[0].score.b" },
		{ "[{\"score\":{\"1234567890123456789012345678901234567890123456789012345678901234\":1}}]", HM_EINVAL,
		  "[0].score: a UUID of more" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct node_score s;
		struct hm_err e = { 0 };

		assert_int_equal(score_text_parse(bad[i].text, &s, &e), -bad[i].code);
		if (strstr(e.msg, bad[i].says) == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
	}
}

static int read_once(void *arg)
{
	hm_auto_node_score s = { 0 };
	struct hm_err e;

	return score_text_parse(arg, &s, &e);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	sweep_check("score_text_parse", read_once, "[{\"uuid\":\"a\",\"score\":{\"b\":5}},{\"uuid\":\"b\"}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),  cmocka_unit_test(test_written),       cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
