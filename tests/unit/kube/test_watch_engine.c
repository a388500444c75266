#include "kube/watch_engine.h"

#include <stdlib.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

#define OBJECT(name, version)                                                                                          \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"u-" name                                   \
	"\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static const char stream[] = EVENT("ADDED", OBJECT("a", "5"))
	EVENT("MODIFIED", OBJECT("b", "6")) "\n" EVENT("FUTURE", "{\"x\":1}") EVENT("DELETED", OBJECT("a", "7"))
		EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"9\"}}") EVENT(
			"ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}");

static const struct {
	enum watch_type type;
	const char *key, *version;
} wanted[] = {
	{ WATCH_ADDED, "n/a", "5" },   { WATCH_MODIFIED, "n/b", "6" }, { WATCH_DELETED, "n/a", "7" },
	{ WATCH_BOOKMARK, NULL, "9" }, { WATCH_ERROR, NULL, "" },
};

static size_t take_all(struct watch_engine *w, size_t seen)
{
	struct watch_event event;

	while (watch_engine_next(w, &event, NULL) > 0) {
		assert_true(seen < HM_COUNT(wanted));
		assert_int_equal(event.type, wanted[seen].type);
		assert_string_equal(event.resource_version, wanted[seen].version);
		if (wanted[seen].key != NULL)
			assert_string_equal(event.object.key, wanted[seen].key);
		if (event.type == WATCH_ERROR) {
			assert_int_equal(event.status.outcome, KUBE_GONE);
			assert_string_equal(event.status.message, "too old");
		}
		seen++;
	}
	return seen;
}

/* However the bytes are cut, the same events come, each as soon as its line is whole. */
static void chunks_of_any_size(void **state)
{
	size_t n = sizeof stream - 1;

	(void)state;
	for (size_t size = 1; size <= n; size++) {
		hm_auto(watch_engine) *w = watch_engine_new(0);
		size_t seen = 0;

		for (size_t at = 0; at < n; at += size) {
			assert_int_equal(watch_engine_push(w, stream + at, HM_MIN(size, n - at), NULL), 0);
			seen = take_all(w, seen);
		}
		assert_int_equal(seen, HM_COUNT(wanted));
	}
}

static void half_a_line_is_no_event(void **state)
{
	static const char line[] = EVENT("ADDED", OBJECT("a", "5"));
	hm_auto(watch_engine) *w = watch_engine_new(0);
	struct watch_event event;

	(void)state;
	assert_int_equal(watch_engine_push(w, line, sizeof line - 2, NULL), 0);
	assert_int_equal(watch_engine_next(w, &event, NULL), 0);
	assert_int_equal(watch_engine_push(w, "\n", 1, NULL), 0);
	assert_int_equal(watch_engine_next(w, &event, NULL), 1);
	assert_int_equal(watch_engine_next(w, &event, NULL), 0);
}

static void garbage_is_an_error_for_ever(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "hello\n", "watch: line 1, column 1: not JSON" },
		{ "{\"type\":\"ADDED\"\n", "watch: line 1, column" },
		{ "[]\n", "watch: is no object" },
		{ "{}\n", "watch: type: is missing" },
		{ "{\"type\":7,\"object\":{}}\n", "watch: type: 7 is not a text" },
		{ "{\"type\":\"ADDED\"}\n", "watch: ADDED without an object" },
		{ "{\"type\":\"ADDED\",\"object\":[]}\n", "watch: ADDED without an object" },
		{ EVENT("ADDED", "{\"metadata\":{}}"), "watch: metadata.name: is missing" },
		{ EVENT("BOOKMARK", "{}"), "watch: metadata: is missing" },
		{ EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"\"}}"),
		  "watch: metadata.resourceVersion: is no version" },
		{ EVENT("ADDED", OBJECT("a", "5")) "x\n", "watch: line 1, column 1: not JSON" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(watch_engine) *w = watch_engine_new(0);
		struct hm_err e = { 0 };
		struct watch_event event;
		int r;

		assert_int_equal(watch_engine_push(w, cases[i].text, strlen(cases[i].text), NULL), 0);
		while ((r = watch_engine_next(w, &event, &e)) > 0)
			;
		assert_int_equal(r, -HM_EPROTO);
		if (strncmp(e.msg, cases[i].msg, strlen(cases[i].msg)) != 0)
			fail_msg("case %zu: %s", i, e.msg);
		e = (struct hm_err) { 0 };
		assert_int_equal(watch_engine_next(w, &event, &e), -HM_EPROTO);
		assert_int_equal(watch_engine_push(w, "\n", 1, &e), -HM_EPROTO);
		assert_memory_equal(e.msg, cases[i].msg, strlen(cases[i].msg));
	}
}

/* A line of just the bound passes; one byte more does not, whether or not its end has come, and however it is cut. */
static void lines_are_bounded(void **state)
{
	static const char line[] = EVENT("ADDED", OBJECT("a", "5"));
	size_t n = sizeof line - 2; /* without the '\n' */

	(void)state;
	for (size_t size = 1; size <= n + 1; size++) {
		hm_auto(watch_engine) *fits = watch_engine_new(n), *less = watch_engine_new(n - 1);
		struct watch_event event;
		struct hm_err e = { 0 };
		int r = 0;

		for (size_t at = 0; at < n + 1; at += size)
			assert_int_equal(watch_engine_push(fits, line + at, HM_MIN(size, n + 1 - at), NULL), 0);
		assert_int_equal(watch_engine_next(fits, &event, NULL), 1);
		for (size_t at = 0; at < n && r == 0; at += size)
			r = watch_engine_push(less, line + at, HM_MIN(size, n - at), &e);
		assert_int_equal(r, -HM_ELIMIT);
		assert_non_null(strstr(e.msg, "larger than"));
	}
}

static void the_second_line_is_bounded_too(void **state)
{
	static const char text[] = "\n{\"type\":\"FUTURE\",\"object\":{\"long\":true}}\n";
	hm_auto(watch_engine) *w = watch_engine_new(10);
	struct watch_event event;

	(void)state;
	assert_int_equal(watch_engine_push(w, text, sizeof text - 1, NULL), 0);
	assert_int_equal(watch_engine_next(w, &event, NULL), -HM_ELIMIT);
}

static void a_large_object(void **state)
{
	static const char head[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
				   "\"resourceVersion\":\"1\"},\"x\":\"";
	enum { SIZE = 3 << 20 };
	hm_auto(watch_engine) *w = watch_engine_new(0);
	hm_auto_heap char *x = malloc(SIZE);
	struct watch_event event;

	(void)state;
	memset(x, 'x', SIZE);
	assert_int_equal(watch_engine_push(w, head, sizeof head - 1, NULL), 0);
	for (size_t at = 0; at < SIZE; at += 16384) {
		assert_int_equal(watch_engine_push(w, x + at, HM_MIN((size_t)16384, SIZE - at), NULL), 0);
		assert_int_equal(watch_engine_next(w, &event, NULL), 0);
	}
	assert_int_equal(watch_engine_push(w, "\"}}\n", 4, NULL), 0);
	assert_int_equal(watch_engine_next(w, &event, NULL), 1);
	assert_string_equal(event.object.key, "a");
	assert_int_equal(watch_engine_next(w, &event, NULL), 0);
}

static int use(void *arg)
{
	hm_auto(watch_engine) *w = watch_engine_new(0);
	struct watch_event event;
	int r = w == NULL ? -1 : 0;

	(void)arg;
	for (size_t at = 0; r >= 0 && at < sizeof stream - 1; at += 100) {
		r = watch_engine_push(w, stream + at, HM_MIN((size_t)100, sizeof stream - 1 - at), NULL);
		while (r >= 0 && (r = watch_engine_next(w, &event, NULL)) > 0)
			;
	}
	return r;
}

static void memory_runs_out(void **state)
{
	(void)state;
	sweep_check("watch_engine", use, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_of_any_size),
		cmocka_unit_test(half_a_line_is_no_event),
		cmocka_unit_test(garbage_is_an_error_for_ever),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(the_second_line_is_bounded_too),
		cmocka_unit_test(a_large_object),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
