#include "kube/collection.h"

#include "harness/unit.h"

static void expect(struct str *url, const char *want)
{
	assert_string_equal(str_text(url), want);
	str_fini(url);
}

/* The parameters of Kubernetes' API: "Efficient detection of changes", "Retrieving large results sets in chunks". */
static void lists(void **state)
{
	struct kube_collection c;
	struct str url = { 0 };

	(void)state;
	assert_true(kube_collection_init(&c, "/api/v1/pods", "spec.nodeName=n1", "a=b"));
	kube_collection_add_list(&c, NULL, 500, NULL, &url);
	expect(&url, "/api/v1/pods?limit=500&fieldSelector=spec.nodeName%3Dn1&labelSelector=a%3Db");
	kube_collection_add_list(&c, NULL, 1, "t/2", &url);
	expect(&url, "/api/v1/pods?limit=1&fieldSelector=spec.nodeName%3Dn1&labelSelector=a%3Db&continue=t%2F2");
	kube_collection_add_list(&c, "", 500, NULL, &url);
	expect(&url, "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dn1&labelSelector=a%3Db");
	kube_collection_fini(&c);
	assert_true(kube_collection_init(&c, "/api/v1/nodes", NULL, NULL));
	kube_collection_add_list(&c, "17", 500, NULL, &url);
	expect(&url, "/api/v1/nodes?resourceVersion=17");
	kube_collection_fini(&c);
}

static void watches(void **state)
{
	struct kube_collection c;
	struct str url = { 0 };

	(void)state;
	assert_true(kube_collection_init(&c, "/api/v1/pods", NULL, "a=b"));
	kube_collection_add_watch(&c, "17", 300, &url);
	expect(&url, "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=17"
		     "&labelSelector=a%3Db");
	kube_collection_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(watches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
