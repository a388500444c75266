#include "kube/patch.h"

#include <stdlib.h>

#include "core/cleanup.h"
#include "harness/sweep.h"
#include "harness/unit.h"

static const struct kube_patch_value two[] = { { "hami.io/a", "x,\"1\":;" }, { "hami.io/b", NULL } };
static const struct kube_patch_value one[] = { { "role", "gpu" } };

static void texts(void **state)
{
	static const struct {
		struct kube_patch patch;
		const char *want;
	} cases[] = {
		{ { 0 }, "{\"metadata\":{}}" },
		{ { .annotations = two, .annotation_count = 2 },
		  "{\"metadata\":{\"annotations\":{\"hami.io/a\":\"x,\\\"1\\\":;\",\"hami.io/b\":null}}}" },
		{ { .labels = one, .label_count = 1 }, "{\"metadata\":{\"labels\":{\"role\":\"gpu\"}}}" },
		{ { .uid = "u",
		    .resource_version = "7",
		    .annotations = one,
		    .annotation_count = 1,
		    .labels = one,
		    .label_count = 1 },
		  "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{\"role\":\"gpu\"},"
		  "\"labels\":{\"role\":\"gpu\"}}}" },
		{ { .resource_version = "7", .labels = one, .label_count = 1 },
		  "{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{\"role\":\"gpu\"}}}" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		hm_auto_heap char *text = NULL;

		assert_int_equal(kube_patch_text(&cases[i].patch, &text, NULL), 0);
		assert_string_equal(text, cases[i].want);
	}
}

static void what_json_cannot_say_is_refused(void **state)
{
	const struct kube_patch_value bad = { "k", "\xff" };
	struct kube_patch patch = { .annotations = &bad, .annotation_count = 1 };
	struct hm_err e = { 0 };
	char *text = NULL;

	(void)state;
	assert_int_equal(kube_patch_text(&patch, &text, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "patch of k: the value is not UTF-8");
	assert_null(text);
}

static int make(void *arg)
{
	struct kube_patch patch = { .uid = "u", .annotations = two, .annotation_count = 2 };
	hm_auto_heap char *text = NULL;

	(void)arg;
	return kube_patch_text(&patch, &text, NULL);
}

static void memory_runs_out(void **state)
{
	(void)state;
	sweep_check("patch", make, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(what_json_cannot_say_is_refused),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
