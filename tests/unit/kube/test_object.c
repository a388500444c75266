#include "kube/object.h"

#include <string.h>

#include "harness/unit.h"

static void reads_metadata(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}";
	static const char node[] =
		"{\"metadata\":{\"name\":\"a\",\"namespace\":null,\"uid\":\"u\",\"resourceVersion\":\"7\"}}";
	hm_auto(cJSON) *tree = NULL, *other = NULL;
	struct kube_object o;

	(void)state;
	assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
	assert_int_equal(kube_object_read(tree, &o, NULL), 0);
	assert_string_equal(o.key, "n/a");
	assert_string_equal(o.name_space, "n");
	assert_string_equal(o.name, "a");
	assert_string_equal(o.uid, "u");
	assert_string_equal(o.resource_version, "7");
	assert_ptr_equal(o.tree, tree);
	assert_int_equal(json_parse(node, strlen(node), &other, NULL), 0);
	assert_int_equal(kube_object_read(other, &o, NULL), 0);
	assert_string_equal(o.key, "a");
	assert_string_equal(o.name_space, "");
}

#define META(rest) "{\"metadata\":{" rest "}}"
#define HUNDRED "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void refuses_what_is_no_object(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "[]", "is no object" },
		{ "{}", "metadata: is missing" },
		{ "{\"metadata\":[]}", "metadata: a list is not an object" },
		{ META("\"uid\":\"u\",\"resourceVersion\":\"7\""), "metadata.name: is missing" },
		{ META("\"name\":\"\",\"uid\":\"u\",\"resourceVersion\":\"7\""), "metadata.name: is empty" },
		{ META("\"name\":\"" HUNDRED HUNDRED HUNDRED "\",\"uid\":\"u\",\"resourceVersion\":\"7\""),
		  "metadata.name: is longer than 253 bytes" },
		{ META("\"name\":\"a\",\"namespace\":\"" HUNDRED "\",\"uid\":\"u\",\"resourceVersion\":\"7\""),
		  "metadata.namespace: is longer than 63 bytes" },
		{ META("\"name\":\"a\",\"resourceVersion\":\"7\""), "metadata.uid: is missing" },
		{ META("\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":7"),
		  "metadata.resourceVersion: 7 is not a text" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cJSON) *tree = NULL;
		struct hm_err e = { 0 };
		struct kube_object o;

		assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), &tree, NULL), 0);
		assert_int_equal(kube_object_read(tree, &o, &e), -HM_EPROTO);
		assert_int_equal(e.code, HM_EPROTO);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_metadata),
		cmocka_unit_test(refuses_what_is_no_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
