#include "kube/binding.h"

#include "harness/sweep.h"
#include "harness/unit.h"

static const struct kube_patch_value two[] = { { "hami.io/a", "x\"" }, { "hami.io/b", "" } };

static void texts(void **state)
{
	struct kube_binding b = { "n/s", "p", "u", "node-1", two, 2 };
	hm_auto_str path = { 0 }, body = { 0 };

	(void)state;
	str_add(&path, "what was there");
	assert_int_equal(kube_binding_text(&b, &path, &body, NULL), 0);
	assert_string_equal(str_text(&path), "/api/v1/namespaces/n%2Fs/pods/p/binding");
	assert_string_equal(str_text(&body),
			    "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\",\"uid\":\"u\","
			    "\"annotations\":{\"hami.io/a\":\"x\\\"\",\"hami.io/b\":\"\"}},"
			    "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"node-1\"}}");
}

static void what_json_cannot_say_is_refused(void **state)
{
	const struct kube_patch_value bad = { "k", "\xff" };
	struct kube_binding b = { "n", "p", "u", "node-1", &bad, 1 };
	hm_auto_str path = { 0 }, body = { 0 };
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(kube_binding_text(&b, &path, &body, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "binding: k: the value is not UTF-8");
}

static int make(void *arg)
{
	struct kube_binding b = { "n", "p", "u", "node-1", two, 2 };
	hm_auto_str path = { 0 }, body = { 0 };

	(void)arg;
	return kube_binding_text(&b, &path, &body, NULL);
}

static void memory_runs_out(void **state)
{
	(void)state;
	sweep_check("binding", make, NULL);
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
