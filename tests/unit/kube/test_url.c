#include "kube/url.h"

#include "harness/unit.h"

static void names_stay_names(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "node-1.example_x~", "node-1.example_x~" },
		{ "a/b", "a%2Fb" },
		{ "a?b#c&d=e+f%", "a%3Fb%23c%26d%3De%2Bf%25" },
		{ "..", "%2E%2E" },
		{ ".", "%2E" },
		{ "...", "..." },
		{ "\xc3\xa9\n", "%C3%A9%0A" },
		{ "", "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		hm_auto_str out = { 0 };

		kube_url_add(&out, cases[i].text);
		assert_string_equal(str_text(&out), cases[i].want);
	}
}

static void paths_and_queries(void **state)
{
	hm_auto_str out = { 0 };

	(void)state;
	kube_url_add_path(&out, "/api/v1", "kube-system", "pods", "a/../b");
	assert_string_equal(str_text(&out), "/api/v1/namespaces/kube-system/pods/a%2F..%2Fb");
	str_clear(&out);
	kube_url_add_path(&out, "/api/v1", NULL, "nodes", NULL);
	kube_url_add_query(&out, "fieldSelector", "spec.nodeName=n1");
	kube_url_add_query(&out, "limit", "5");
	assert_string_equal(str_text(&out), "/api/v1/nodes?fieldSelector=spec.nodeName%3Dn1&limit=5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_stay_names),
		cmocka_unit_test(paths_and_queries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
