#include "core/cursor.h"

#include <string.h>

#include "core/cleanup.h"
#include "harness/unit.h"

static struct cur of(const char *text)
{
	return cur_of(text, strlen(text));
}

#define IS(piece, text) assert_true(piece_is(piece, text))

static void until_takes_the_stop(void **state)
{
	struct cur c = of("uuid=GPU-1,,x");

	(void)state;
	IS(cur_until(&c, '='), "uuid");
	IS(cur_until(&c, ','), "GPU-1");
	IS(cur_until(&c, ','), "");
	assert_false(c.bad);
	assert_false(cur_at_end(&c));
	IS(cur_rest(&c), "x");
	assert_true(cur_at_end(&c));
	IS(cur_rest(&c), "");
	assert_true(cur_at_end(&c));
}

static void a_failure_stays_and_nothing_moves(void **state)
{
	struct cur c = of("abc");
	const char *here;

	(void)state;
	cur_word(&c, "a");
	here = c.p;
	assert_int_equal(cur_until(&c, ',').n, 0);
	assert_true(c.bad);
	assert_int_equal(cur_until(&c, 'c').n, 0);
	assert_int_equal(cur_line(&c).n, 0);
	assert_int_equal(cur_rest(&c).n, 0);
	assert_int_equal(cur_u64(&c, ',', 9), 0);
	cur_word(&c, "b");
	assert_true(c.bad);
	assert_ptr_equal(c.p, here);
	assert_false(cur_at_end(&c));
}

static void lines(void **state)
{
	struct cur c = of("one\n\nthree\r\nlast");

	(void)state;
	IS(cur_line(&c), "one");
	IS(cur_line(&c), "");
	IS(cur_line(&c), "three\r");
	IS(cur_line(&c), "last");
	assert_true(cur_at_end(&c));
	cur_line(&c);
	assert_true(c.bad);
	c = of("");
	cur_line(&c);
	assert_true(c.bad);
	c = of("a\n");
	IS(cur_line(&c), "a");
	assert_true(cur_at_end(&c));
}

static void items(void **state)
{
	struct cur c = of("a,,b");

	(void)state;
	IS(cur_item(&c, ','), "a");
	IS(cur_item(&c, ','), "");
	IS(cur_item(&c, ','), "b");
	assert_true(cur_at_end(&c));
	assert_int_equal(cur_item(&c, ',').n, 0);
	assert_true(c.bad);
}

static void numbers(void **state)
{
	struct cur c = of("10,20,030:x");

	(void)state;
	assert_int_equal(cur_u64(&c, ',', 10), 10);
	assert_int_equal(cur_u64(&c, ',', 100), 20);
	assert_int_equal(cur_u64(&c, ':', 100), 30);
	assert_false(c.bad);
	assert_int_equal(cur_u64(&c, ':', 100), 0);
	assert_true(c.bad);
}

static void a_bad_number_stands_where_it_was(void **state)
{
	static const char *const texts[] = { ",", "11,", "-1,", " 1,", "1", "1;", "1x,", "" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		struct cur c = of(texts[i]);

		assert_int_equal(cur_u64(&c, ',', 10), 0);
		assert_true(c.bad);
		assert_ptr_equal(c.p, texts[i]);
	}
}

static void words(void **state)
{
	struct cur c = of("gpu=x");

	(void)state;
	cur_word(&c, "gpu=");
	cur_word(&c, "");
	assert_false(c.bad);
	cur_word(&c, "xy");
	assert_true(c.bad);
	assert_string_equal(c.p, "x");
}

/* No byte behind the end is looked at: the text is cut at every length, in memory of just that length. */
static void stays_inside_its_bytes(void **state)
{
	static const char whole[] = "a=1,b=22\nend";

	(void)state;
	for (size_t n = 0; n < sizeof whole; n++) {
		hm_auto_heap char *copy = malloc(n > 0 ? n : 1);
		struct cur c;

		assert_non_null(copy);
		memcpy(copy, whole, n);
		c = cur_of(copy, n);
		cur_until(&c, '=');
		cur_u64(&c, ',', 9);
		cur_word(&c, "b=");
		cur_u64(&c, '\n', 99);
		cur_word(&c, "end");
		assert_int_equal(cur_at_end(&c), n == strlen(whole));
	}
}

static void pieces(void **state)
{
	struct piece s = { "hello", 5 };
	char out[6];
	uint64_t v = 0;

	(void)state;
	assert_true(piece_starts(s, ""));
	assert_true(piece_starts(s, "hello"));
	assert_false(piece_starts(s, "hello!"));
	assert_false(piece_is(s, "hell"));
	assert_true(piece_copy(s, out, sizeof out));
	assert_string_equal(out, "hello");
	assert_false(piece_copy(s, out, 5));
	assert_string_equal(out, "");
	assert_false(piece_copy(s, out, 0));
	assert_false(piece_copy((struct piece) { "a\0b", 3 }, out, sizeof out));
	assert_string_equal(out, "");
	assert_true(piece_u64((struct piece) { "12x", 2 }, 12, &v));
	assert_int_equal(v, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(until_takes_the_stop),
		cmocka_unit_test(a_failure_stays_and_nothing_moves),
		cmocka_unit_test(lines),
		cmocka_unit_test(items),
		cmocka_unit_test(numbers),
		cmocka_unit_test(a_bad_number_stands_where_it_was),
		cmocka_unit_test(words),
		cmocka_unit_test(stays_inside_its_bytes),
		cmocka_unit_test(pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
