#include "agent/pod_names.h"

#include <string.h>

#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"

static const char *name_of(const struct claims *s, uint64_t number)
{
	static char text[800];
	const struct claim *c = claims_find(s, number);

	snprintf(text, sizeof text, "%s/%s/%s", c->pod_namespace, c->pod_name, c->container);
	return text;
}

static void names_go_by_whole_sets_and_container(void **state)
{
	static const char *const a[] = { "GPU-0::0" }, *const b[] = { "GPU-0::1" };
	const struct pod_resources_container list[] = {
		{ "ns", "one", "c1", a, 1 },
		{ "ns", "two", "x", b, 1 },
	};
	struct claim unknown = make_claim(5, "u2", "", "GPU-0::1", NULL);
	struct claims *s = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(claims_open(temp_path("claims"), &s, &e), 0);
	put_claim(s, make_claim(1, "u1", "", "GPU-0::0", NULL));
	put_claim(s, make_claim(2, "u1", "", "GPU-0::0", "GPU-0::2")); /* its init container: never listed */
	put_claim(s, make_claim(3, "u3", "", "GPU-0::0", NULL));       /* another container's name */
	put_claim(s, make_claim(4, "", "", "GPU-0::3", NULL));
	unknown.container[0] = '\0';
	put_claim(s, unknown);
	pod_names_apply(s, list, HM_COUNT(list));
	assert_string_equal(name_of(s, 1), "ns/one/c1");
	assert_string_equal(name_of(s, 2), "ns/one/c2");
	assert_string_equal(name_of(s, 3), "//c3");
	assert_string_equal(name_of(s, 4), "//c4");
	assert_string_equal(name_of(s, 5), "ns/two/x");
	claims_free(s);
	assert_int_equal(claims_open(temp_path("claims"), &s, &e), 0);
	assert_string_equal(name_of(s, 1), "ns/one/c1"); /* on disk too */
	claims_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_go_by_whole_sets_and_container, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
