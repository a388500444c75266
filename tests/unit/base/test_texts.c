#include "base/texts.h"

#include <stdio.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

static void a_text_is_kept_once(void **state)
{
	hm_auto(texts) *t = texts_new();
	const char *first[200];
	char text[32] = "a";

	(void)state;
	first[0] = texts_keep(t, text);
	assert_ptr_not_equal(first[0], text);
	for (int i = 1; i < 200; i++) {
		snprintf(text, sizeof text, "%d", i);
		first[i] = texts_keep(t, text);
	}
	assert_string_equal(first[0], "a");
	for (int i = 1; i < 200; i++) {
		snprintf(text, sizeof text, "%d", i);
		assert_ptr_equal(texts_keep(t, text), first[i]);
		assert_string_equal(first[i], text);
	}
}

static void what_is_new_is_said_once(void **state)
{
	hm_auto(texts) *t = texts_new();

	(void)state;
	assert_true(texts_first(t, "a"));
	assert_false(texts_first(t, "a"));
	assert_true(texts_first(t, ""));
}

static size_t count(const struct texts *t)
{
	const char *text;
	size_t n = 0;

	for (size_t at = 0; texts_next(t, &at, &text);)
		n++;
	return n;
}

static void what_is_dropped_as_often_is_gone(void **state)
{
	hm_auto(texts) *t = texts_new();
	const char *a = texts_keep(t, "a"), *last = NULL;
	size_t at = 0;

	(void)state;
	assert_ptr_equal(texts_keep(t, "a"), a);
	assert_non_null(texts_keep(t, "b"));
	assert_int_equal(count(t), 2);
	texts_drop(t, a);
	assert_int_equal(count(t), 2);
	texts_drop(t, a);
	assert_int_equal(count(t), 1);
	assert_true(texts_next(t, &at, &last));
	assert_string_equal(last, "b");
	assert_true(texts_first(t, "a"));
}

static int keep(void *arg)
{
	hm_auto(texts) *t = texts_new();

	(void)arg;
	if (t == NULL)
		return -1;
	return texts_keep(t, "x") != NULL && texts_keep(t, "y") != NULL ? 0 : -1;
}

static void memory_that_is_short_keeps_nothing(void **state)
{
	(void)state;
	sweep_check("texts", keep, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_kept_once),
		cmocka_unit_test(what_is_new_is_said_once),
		cmocka_unit_test(what_is_dropped_as_often_is_gone),
		cmocka_unit_test(memory_that_is_short_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
